// SPDX-License-Identifier: MIT
// See testing/world_backend.hpp.
#include "testing/world_backend.hpp"

#include <cerrno>
#include <utility>

#include "base/remote_work.hpp"

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

bool world_backend::submit(operation& op) noexcept {
  if (!is_of_world(op)) return inner_->submit(op);
  op.next = std::exchange(waits_, &op);
  return false;
}

void world_backend::cancel(operation& op) noexcept {
  if (!is_of_world(op)) return inner_->cancel(op);
  if (!op.cancelling) end(op, -ECANCELED, cancelled_);
  op.cancelling = true;
}

void world_backend::poll(time_point deadline, completions& ended) {
  ended.append(cancelled_);
  inner_->poll(time_point::min(), ended);
  operation* const over = waiting_for(occasion::over);
  if (over != nullptr && inside_.failed()) end(*over, over->flags, ended);
  if (ended.empty() && deadline != time_point::min()) stand_idle(deadline, ended);
}

/// No fiber can run before `deadline`, unless somebody outside of the world helps.
void world_backend::stand_idle(time_point deadline, completions& ended) {
  if (operation* const idle = waiting_for(occasion::idle)) return end(*idle, idle->flags, ended);
  operation* const advanced = waiting_for(occasion::advanced);
  if (advanced != nullptr && inside_.target < deadline) {
    pass_time(inside_.target, ended);
    return end(*advanced, advanced->flags, ended);
  }
  const bool others_help = detail::remote_work::under_way();
  if (inside_.settings().time == time_mode::stands && advanced == nullptr && !others_help) {
    inside_.fail("every fiber waits, and time stands");
  } else if (deadline == time_point::max() && !others_help) {
    inside_.fail("every fiber waits, and no timer is set");
  } else if (deadline != time_point::max() &&
             deadline - inside_.start > inside_.settings().horizon) {
    inside_.fail("the horizon was reached");
  } else {
    return pass_time(deadline, ended);
  }
  if (operation* const over = waiting_for(occasion::over)) end(*over, over->flags, ended);
}

void world_backend::pass_time(time_point until, completions& ended) {
  if (until == time_point::max()) return inner_->poll(until, ended);
  inner_->poll(until + offset_, ended);
}

}}}  // namespace motet::MOTET_ABI::testing
