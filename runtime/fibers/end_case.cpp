// SPDX-License-Identifier: MIT
// The branch of a select() that waits for a fiber's end. See detail/sync/select_branch.hpp.
#include <motet/detail/fibers/await_fiber.hpp>
#include <motet/detail/sync/select_branch.hpp>
#include <utility>

#include "sync/remote_awaiter.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

end_case::end_case(fiber_ref fiber)
    : select_branch(false), fiber_(std::move(fiber)), block_(fiber_.block_.get()) {
  if (block_ == nullptr) refuse_empty_handle();
  notify = [](awaiter& record) noexcept {
    auto& self = static_cast<end_case&>(record);
    return self.win(*self.owner->fiber->home);
  };
}

end_case::end_case(end_case&& other) noexcept : end_case(other.fiber_) {
  enabled = other.enabled;
}

bool end_case::proceeds(thread_core& thread) {
  if (block_ == &thread.running()) refuse_to_await_oneself();
  if (!block_->dead()) return false;
  if (thread.is_home_of(*block_)) claim_failure(*block_);
  return true;
}

bool end_case::enter(thread_core& thread) {
  if (thread.is_home_of(*block_)) {
    block_->awaiters.push_back(*this);
    return false;
  }
  remote_ = remote_awaiter::send(*block_, thread.running(), this);
  if (remote_ == nullptr) return true;
  thread.add_pending(thread.running());
  return false;
}

void end_case::leave_list() noexcept {
  if (remote_ == nullptr) {
    list<awaiter, awaiters_tag>::remove(*this);
    return;
  }
  present_core().remove_pending(*owner->fiber);
  remote_awaiter* remote = std::exchange(remote_, nullptr);
  if (remote->give_up()) return;
  if (remote->over()) {
    remote->dispose();
  } else {
    remote->abandon();
  }
}

void end_case::finish() {
  if (remote_ == nullptr) return;
  present_core().remove_pending(*owner->fiber);
  std::exchange(remote_, nullptr)->dispose();
}

}}}  // namespace motet::MOTET_ABI::detail
