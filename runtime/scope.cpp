// SPDX-License-Identifier: MIT
// Scopes that a deadline ends: a timer in the frame, and a level that lasts as long as the scope.
#include <motet/detail/scope.hpp>

#include "deadline.hpp"
#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

scope::scope(clock::duration limit) {
  thread_state& thread = here();
  thread.reserve_timers(1);
  fiber_ = &thread.running();
  outer_ = fiber_->scopes;
  id_ = thread.next_scope();
  fiber_->scopes = this;
  alarm_.owner = this;
  alarm_.fiber = fiber_;
  alarm_.due = deadline_after(thread.now(), limit);
  alarm_.fire = &scope::expire;
  thread.arm(alarm_);
}

scope::~scope() {
  thread_state& thread = home_of(*fiber_);
  thread.disarm(alarm_);
  thread.unreserve_timer();
  fiber_->scopes = outer_;
  if (expired_) thread.refresh_scopes(*fiber_);
}

void scope::expire(timer& alarm) noexcept {
  scope& ended = *static_cast<deadline_timer&>(alarm).owner;
  ended.expired_ = true;
  home_of(*ended.fiber_).interrupt_fiber(*ended.fiber_, interrupt_scope);
}

}  // namespace motet::inline MOTET_ABI::detail
