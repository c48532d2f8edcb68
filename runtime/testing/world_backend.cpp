// SPDX-License-Identifier: MIT
// See testing/world_backend.hpp.
#include "testing/world_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/remote_work.hpp"
#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

/// operation::stage of one that the operating system does not do.
constexpr std::uint8_t of_world = 1;

}  // namespace

world_backend::world_backend(simulation& inside, std::unique_ptr<backend> virtual_time)
    : inside_(inside), inner_(std::move(virtual_time)) {
  inside_.threads.set_kernel(this);
}

world_backend::~world_backend() {
  inside_.threads.set_kernel(nullptr);
}

bool world_backend::is_of_world(const operation& op) const noexcept {
  return op.kind == verb::wait_fd && op.fd == inside_.descriptor();
}

void world_backend::forget(int number) noexcept {
  inside_.net.forget(number);
  inside_.storage.forget(number);
  inner_->forget(number);
}

bool world_backend::submit(operation& op) noexcept {
  op.stage = of_world;
  if (inside_.net.has(op.fd)) return inside_.net.submit(op, results_);
  if (inside_.storage.has(op)) return inside_.storage.submit(op, results_);
  if (is_of_world(op)) {
    inside_.waits.push_back({&op, &results_});
    return false;
  }
  op.stage = 0;
  if (inner_->submit(op)) return true;
  ++system_operations_;
  return false;
}

/// Its descriptor may be closed, and it may have ended on another thread just before.
void world_backend::cancel(operation& op) noexcept {
  if (op.stage != of_world) return inner_->cancel(op);
  if (!inside_.net.cancel(op) && !inside_.storage.cancel(op)) cancel_wait(op);
}

void world_backend::cancel_wait(operation& op) {
  if (std::erase_if(inside_.waits, [&](const occasion_wait& each) { return each.op == &op; }) == 0)
    return;
  op.cancelling = true;
  op.result = -ECANCELED;
  results_.push(op);
}

/// Only the first fiber is idle; all in await_time() look at the clock.
/// Returns: whether there was one.
bool world_backend::end_waits_for(occasion what) {
  bool has_ended = false;
  std::erase_if(inside_.waits, [&](const occasion_wait& each) {
    const bool ends =
        each.op->flags == static_cast<int>(what) && (what == occasion::advanced || !has_ended);
    if (!ends) return false;
    each.op->result = each.op->flags;
    each.results->push(*each.op);
    return has_ended = true;
  });
  return has_ended;
}

void world_backend::poll_system(time_point deadline) {
  completions ended;
  inner_->poll(deadline, ended);
  while (operation* const op = ended.pop()) {
    --system_operations_;
    results_.push(*op);
  }
}

void world_backend::poll(time_point deadline, completions& ended) {
  pass_time(time_point::min());
  if (inside_.threads.has_others()) look_at_all();
  pass_events();
  if (now() - inside_.start > inside_.settings().horizon) inside_.fail("the horizon was reached");
  if (results_.empty() && deadline > now()) {
    sleep(deadline);
  } else {
    inside_.threads.pass_on(true);
  }
  ended.append(results_);
}

void world_backend::pass_moment() {
  inside_.time += std::chrono::microseconds(1);
  look_at_all();
  pass_events();
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
    if (inside_.threads.pass_on(false)) {
      has_looked = false;
      continue;
    }
    if (!has_looked) look_at_all();
    if (!inside_.threads.pass_on(false)) stand_idle();
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
  if (!is_helped && end_waits_for(occasion::idle)) return;
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
  if (until <= now()) end_waits_for(occasion::advanced);
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
  if (inside_.threads.has_others() && detail::remote_work::under_way() && until > now()) {
    detail::sys::sleep_for(nap);  // another thread may be helped
    until = std::min(until, now() + nap);
  }
  const bool is_span = until != time_point::min() && until != time_point::max();
  const time_point before = inner_->now();
  poll_system(is_span ? before + (until - now()) : until);
  inside_.time += inner_->now() - before;
}

}}}  // namespace motet::MOTET_ABI::testing
