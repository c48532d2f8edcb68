// SPDX-License-Identifier: MIT
// What is beside the path of a switch. See detail/heart/switchpoint.hpp.
#include <motet/detail/heart/switchpoint.hpp>
#include <utility>

#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A switch between each two calls that need not wait would cost more than many of them.
constexpr int most_calls_in_a_row = 16;

}  // namespace

void thread_core::look_around() noexcept {
  static_cast<thread_state*>(this)->look_around_now();
}

void thread_core::look_between_calls() noexcept {
  calls_until_look_ = calls_between_looks;
  look_around();
}

void thread_core::poll_at_once() noexcept {
  static_cast<thread_state*>(this)->poll(false);
}

void thread_core::rest() noexcept {
  static_cast<thread_state*>(this)->rest_now();
}

void thread_core::throw_pending() {
  static_cast<thread_state*>(this)->throw_what_is_pending();
}

bool thread_core::must_throw_slowly() noexcept {
  return static_cast<thread_state*>(this)->must_throw_now();
}

bool thread_core::interrupted_at_once() noexcept {
  return static_cast<thread_state*>(this)->interrupts_wait();
}

void thread_state::give_way() noexcept {
  if (++calls_in_a_row_ < most_calls_in_a_row) return;
  calls_in_a_row_ = 0;
  if (queue_.empty()) look_around();
  if (!queue_.empty()) snooze();
}

void thread_state::checkpoint() noexcept {
  const bool overdue = poll_overdue();
  if (overdue || submitted_since_poll_) poll(false);
  if (overdue && !queue_.empty()) snooze();
}

}}}  // namespace motet::MOTET_ABI::detail
