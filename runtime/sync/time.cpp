// SPDX-License-Identifier: MIT
// Sleeping: a timer in the frame of the sleeper.
#include <algorithm>
#include <motet/sync/time.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

struct sleeper : timer {
  sleeper(control_block& self, clock::time_point deadline) noexcept {
    due = std::max(deadline, clock::time_point());  // backends expect no instant before the boot
    fiber = &self;
    fire = [](timer& alarm) noexcept {
      auto& self_sleeper = static_cast<sleeper&>(alarm);
      self_sleeper.fiber->home->resume(self_sleeper.wait, wake_reason::time);
    };
  }
  wait_record wait{"sleep"};
};

}}  // namespace detail

void sleep_until(clock::time_point deadline) {
  detail::thread_state& thread = detail::here();
  thread.deliver_before_switch();
  detail::sleeper asleep(thread.running(), deadline);
  thread.time.arm(asleep);
  const detail::wake_reason woken = thread.park(asleep.wait);
  thread.time.disarm(asleep);
  if (woken == detail::wake_reason::interrupted) thread.throw_pending();
  thread.deliver_before_switch();
}

void sleep_for(detail::timespan span) {
  sleep_until(detail::here().time.after(span.length));
}

void sleep() {
  detail::thread_state& thread = detail::here();
  for (;;) {
    thread.deliver_before_switch();
    detail::wait_record wait("sleep without end");
    if (thread.park(wait) == detail::wake_reason::interrupted) thread.throw_pending();
  }
}

}}  // namespace motet::MOTET_ABI
