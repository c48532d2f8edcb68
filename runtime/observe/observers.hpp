// SPDX-License-Identifier: MIT
// What observes a thread from its runtime's start to its end, as the options ask: the dump signal,
// the monitor of stalls, the recorder, and the page for debuggers.
#pragma once

#include <memory>
#include <motet/runtime/options.hpp>

#include "core/event_recorder.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

// See core/hooks.hpp.
std::unique_ptr<event_recorder> prepare_observers(const options& settings);
void observe(thread_state& thread, std::unique_ptr<event_recorder> recorder) noexcept;
void lock_observers();
void unlock_observers() noexcept;
void abandon_observers() noexcept;

}}}  // namespace motet::MOTET_ABI::detail
