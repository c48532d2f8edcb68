// SPDX-License-Identifier: MIT
// See testing/world_backend.hpp.
#include "testing/world_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/remote_work.hpp"
#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

world_backend::world_backend(simulation& inside, std::unique_ptr<backend> virtual_time)
    : inside_(inside), inner_(std::move(virtual_time)) {
  inside_.threads.own_kernel(this);
}

world_backend::~world_backend() {
  inside_.threads.own_kernel(nullptr);
}

bool world_backend::is_of_world(const operation& op) const noexcept {
  return op.kind == verb::wait_fd && op.fd == inside_.descriptor();
}

bool world_backend::end_wait_for(occasion what) noexcept {
  operation* op = waits_;
  while (op != nullptr && op->flags != static_cast<int>(what)) op = op->next;
  if (op != nullptr) end(*op, op->flags);
  return op != nullptr;
}

bool world_backend::end_any_wait_for(occasion what) {
  const auto& kernels = inside_.threads.kernels();
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](world_backend* each) { return each->end_wait_for(what); });
}

/// Ends a wait for an occasion, or one that was cancelled.
void world_backend::end(operation& op, std::int32_t result) noexcept {
  operation** link = &waits_;
  while (*link != &op) link = &(*link)->next;
  *link = op.next;
  op.result = result;
  results_.push(op);
}

void world_backend::forget(int number) noexcept {
  inside_.net.forget(number);
  inside_.storage.forget(number);
  inner_->forget(number);
}

bool world_backend::submit(operation& op) noexcept {
  if (inside_.net.has(op.fd)) return inside_.net.submit(op, results_);
  if (inside_.storage.has(op)) return inside_.storage.submit(op, results_);
  if (!is_of_world(op)) return inner_->submit(op);
  operation** last = &waits_;
  while (*last != nullptr) last = &(*last)->next;
  op.next = nullptr;
  *last = &op;
  return false;
}

void world_backend::cancel(operation& op) noexcept {
  if (inside_.net.has(op.fd)) return inside_.net.cancel(op);
  if (op.kind == verb::fsync && inside_.storage.has(op)) return inside_.storage.cancel(op);
  if (!is_of_world(op)) return inner_->cancel(op);
  if (!op.cancelling) end(op, -ECANCELED);
  op.cancelling = true;
}

void world_backend::poll(time_point deadline, completions& ended) {
  pass_time(time_point::min());
  pass_events();
  if (now() - inside_.start > inside_.settings().horizon) inside_.fail("the horizon was reached");
  if (results_.empty() && deadline > now()) {
    sleep(deadline);
  } else {
    inside_.threads.pass_on();
  }
  ended.append(results_);
}

void world_backend::pass_events() {
  inside_.net.pass_to(now());
  inside_.net.complete();
  inside_.storage.complete();
}

/// Until this thread has something to do, the others run; if none of them can, time passes.
void world_backend::sleep(time_point deadline) {
  bool has_looked = !inside_.threads.has_others();
  inside_.threads.begin_sleep(deadline);
  while (!inside_.threads.can_run()) {
    if (inside_.threads.pass_on()) {
      has_looked = false;
      continue;
    }
    if (!has_looked) look_at_all();
    if (!inside_.threads.pass_on()) stand_idle();
  }
  inside_.threads.end_sleep();
}

/// The operating system may have ended what threads wait for.
void world_backend::look_at_all() {
  for (world_backend* const each : inside_.threads.kernels()) each->look();
}

/// No thread can run, unless one outside of the world or the kernel helps.
void world_backend::stand_idle() {
  const bool is_helped = detail::remote_work::under_way();
  if (!is_helped && end_any_wait_for(occasion::idle)) return;
  const time_point deadline = std::min(inside_.threads.end_of_sleep(), inside_.net.next_event());
  if (inside_.next_awaited() < deadline) return pass_awaited_time();
  if (!is_helped) look_for_failure(deadline);
  if (!inside_.function_runs_on()) pass_time(deadline);
  pass_events();
}

/// Time may pass in part, if something happens meanwhile.
void world_backend::pass_awaited_time() {
  const time_point until = inside_.next_awaited();
  if (until > now()) pass_time(until);
  if (until <= now()) end_any_wait_for(occasion::advanced);
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

/// The clock follows that of the backend of virtual time.
void world_backend::pass_time(time_point until) {
  constexpr auto nap = std::chrono::microseconds(100);
  const time_point before = inner_->now();
  const bool is_span = until != time_point::min() && until != time_point::max();
  if (inside_.threads.has_others() && detail::remote_work::under_way() && until > now()) {
    detail::sys::sleep_for(nap);  // another thread may be helped
    until = std::min(until, now() + nap);
  }
  inner_->poll(is_span ? before + (until - now()) : until, results_);
  inside_.time += inner_->now() - before;
}

}}}  // namespace motet::MOTET_ABI::testing
