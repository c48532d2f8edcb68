// SPDX-License-Identifier: MIT
// See motet/base/clock.hpp.
#include <motet/base/clock.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI {

clock::time_point clock::now() noexcept {
  detail::thread_state* thread = detail::self();
  return thread == nullptr ? std::chrono::steady_clock::now() : thread->time.now();
}

}}  // namespace motet::MOTET_ABI
