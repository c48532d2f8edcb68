// SPDX-License-Identifier: MIT
// The beginning and the end of a thread's runtime, for the table in core/hooks.hpp.
#pragma once

#include <exception>
#include <memory>
#include <motet/detail/core/control_block.hpp>
#include <motet/runtime/options.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct fork_reserve;
struct thread_core;
class thread_state;

// runtime/run.cpp

thread_core& begin_runtime();
control_block& begin_session(const options& settings);
std::exception_ptr end_session(control_block& main, bool returns_first) noexcept;

// runtime/fork.cpp

/// Returns: what the runtime of a forked child begins with.
/// Throws: std::bad_alloc.
std::shared_ptr<fork_reserve> new_fork_reserve();
std::exception_ptr make_kernel_of_child(thread_state& child) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
