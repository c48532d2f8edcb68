// SPDX-License-Identifier: MIT
// See testing/world_backend.hpp.
#include "testing/world_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/remote_work.hpp"
#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

/// No run has timers at so early an instant, so that none is due at the start.
constexpr clock::time_point beginning{std::chrono::hours(24)};

}  // namespace

world_backend::world_backend(simulation& inside, std::unique_ptr<backend> virtual_time)
    : inside_(inside), inner_(std::move(virtual_time)), offset_(inner_->now() - beginning) {
  inside_.start = now();
}

bool world_backend::is_of_world(const operation& op) const noexcept {
  return op.kind == verb::wait_fd && op.fd == inside_.descriptor();
}

operation* world_backend::waiting_for(occasion what) const noexcept {
  operation* op = waits_;
  while (op != nullptr && op->flags != static_cast<int>(what)) op = op->next;
  return op;
}

/// Ends a wait for an occasion, or one that was cancelled.
void world_backend::end(operation& op, std::int32_t result, completions& ended) noexcept {
  operation** link = &waits_;
  while (*link != &op) link = &(*link)->next;
  *link = op.next;
  op.result = result;
  ended.push(op);
}

void world_backend::forget(int number) noexcept {
  inside_.net.forget(number);
  inside_.storage.forget(number);
  inner_->forget(number);
}

bool world_backend::submit(operation& op) noexcept {
  if (inside_.net.has(op.fd)) return inside_.net.submit(op);
  if (inside_.storage.has(op)) return inside_.storage.submit(op);
  if (!is_of_world(op)) return inner_->submit(op);
  operation** last = &waits_;
  while (*last != nullptr) last = &(*last)->next;
  op.next = nullptr;
  *last = &op;
  return false;
}

void world_backend::cancel(operation& op) noexcept {
  if (inside_.net.has(op.fd)) return inside_.net.cancel(op, cancelled_);
  if (op.kind == verb::fsync && inside_.storage.has(op))
    return inside_.storage.cancel(op, cancelled_);
  if (!is_of_world(op)) return inner_->cancel(op);
  if (!op.cancelling) end(op, -ECANCELED, cancelled_);
  op.cancelling = true;
}

void world_backend::poll(time_point deadline, completions& ended) {
  ended.append(cancelled_);
  inner_->poll(time_point::min(), ended);
  pass_events(ended);
  if (now() - inside_.start > inside_.settings().horizon) inside_.fail("the horizon was reached");
  if (ended.empty() && deadline > now()) stand_idle(deadline, ended);
}

void world_backend::pass_events(completions& ended) {
  inside_.net.pass_to(now());
  inside_.net.complete(ended);
  inside_.storage.complete(ended);
}

/// No fiber can run before `deadline`, unless another thread or the kernel helps. The poll before
/// may have read what woke the thread.
void world_backend::stand_idle(time_point deadline, completions& ended) {
  if (detail::self()->mail().filled() || inside_.function_runs_on()) return;
  const bool is_helped = detail::remote_work::under_way();
  deadline = std::min(deadline, inside_.net.next_event());
  operation* const idle = waiting_for(occasion::idle);
  if (idle != nullptr && !is_helped) return end(*idle, idle->flags, ended);
  if (inside_.next_awaited() < deadline) return pass_awaited_time(ended);
  if (!is_helped) look_for_failure(deadline);
  if (!inside_.function_runs_on()) pass_time(deadline, ended);
  pass_events(ended);
}

/// Time may pass in part, if something happens meanwhile.
void world_backend::pass_awaited_time(completions& ended) {
  const time_point until = inside_.next_awaited();
  if (until > now()) pass_time(until, ended);
  operation* const advanced = waiting_for(occasion::advanced);
  if (until <= now() && advanced != nullptr) end(*advanced, advanced->flags, ended);
}

void world_backend::look_for_failure(time_point deadline) {
  const bool is_endless = deadline == time_point::max();
  if (inside_.failed()) {
    if (is_endless) inside_.give_up();
  } else if (inside_.settings().time == time_mode::stands &&
             inside_.next_awaited() == time_point::max()) {
    inside_.fail("every fiber waits, and time stands");
  } else if (is_endless) {
    inside_.fail("every fiber waits, and no timer is set");
  } else if (deadline - inside_.start > inside_.settings().horizon) {
    inside_.fail("the horizon was reached");
  }
}

void world_backend::pass_time(time_point until, completions& ended) {
  inner_->poll(until == time_point::max() ? until : until + offset_, ended);
}

}}}  // namespace motet::MOTET_ABI::testing
