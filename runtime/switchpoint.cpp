// SPDX-License-Identifier: MIT
// What is beside the path of a switch. See switchpoint.hpp.
#include "switchpoint.hpp"

#include <utility>

namespace motet::inline MOTET_ABI::detail {

namespace {

/// A switch between each two calls that need not wait would cost more than many of them.
constexpr int most_calls_in_a_row = 16;

}  // namespace

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

/// Nobody can free the stack he stands on: the successor does.
void thread_state::bury_ended() noexcept {
  control_block& buried = *std::exchange(ended_, nullptr);
  sanitizer::forget(buried.where.watched, buried.runs_on.bottom, buried.runs_on.size());
  stacks_.give_back(buried.runs_on);
  release_later(buried);
}

}  // namespace motet::inline MOTET_ABI::detail
