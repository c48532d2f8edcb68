// SPDX-License-Identifier: MIT
// The stack of a fiber that runs for the first time, and that of one that has ended.
#include <utility>

#include "base/saved_errno.hpp"
#include "core/store/make_fiber.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void thread_core::give_stack(control_block& fresh) noexcept {
  fresh.runs_on = static_cast<thread_state*>(this)->store.stacks.take_promised();
  lay_out_stack(fresh, fresh.runs_on.top);
}

void thread_core::give_back_retired_stack_now() noexcept {
  const saved_errno errno_guard(*live_errno_);
  retired_stack old_stack = std::exchange(retired_stack_, retired_stack());
  sanitizer::forget(old_stack.shadow, old_stack.region.bottom, old_stack.region.size());
  static_cast<thread_state*>(this)->store.stacks.give_back(old_stack.region);
}

}}}  // namespace motet::MOTET_ABI::detail
