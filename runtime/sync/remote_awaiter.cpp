// SPDX-License-Identifier: MIT
// See sync/remote_awaiter.hpp.
#include "sync/remote_awaiter.hpp"

#include <utility>

#include "cancellation/child_failures.hpp"
#include "core/event_recorder.hpp"
#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void enlist(awaiter& record, control_block& fiber) noexcept {
  if (!fiber.dead()) {
    fiber.awaiters.push_back(record);
    return;
  }
  ++fiber.references;  // notify() may give up the last other reference
  if (record.notify(record)) withdraw_failure(fiber);
  release_later(fiber);
}

remote_awaiter::remote_awaiter(handle target, handle waiter_handle, wait_node* node) noexcept
    : target_(std::move(target)),
      waiter_(std::move(waiter_handle)),
      block_(target_.get()),
      node_(node),
      claims_(node == nullptr) {
  wait.target = &block_;
  for (letter* post : {&enlisting_, &fetching_, &news_}) post->sender = this;
  enlisting_.handle_post = [](post& item, thread_state&) noexcept {
    remote_awaiter& self = *static_cast<letter&>(item).sender;
    enlist(self, *self.target_.get());
  };
  notify = [](awaiter& record_of_list) noexcept {
    auto& self = static_cast<remote_awaiter&>(record_of_list);
    const bool claims = self.claims_;
    auto expectation = progress::waiting;
    if (!self.stage_.compare_exchange_strong(expectation, progress::notified)) return false;
    note_post(*self.waiter_.get());
    self.waiter_.get()->mail->push(self.news_);
    return claims;
  };
  news_.handle_post = [](post& item, thread_state& home) noexcept {
    static_cast<letter&>(item).sender->come_home(home);
  };
  fetching_.handle_post = [](post& item, thread_state&) noexcept {
    remote_awaiter* self = static_cast<letter&>(item).sender;
    self->unlink();
    delete self;
  };
}

remote_awaiter* remote_awaiter::send(control_block& target, control_block& record,
                                     wait_node* node) {
  auto* result = new remote_awaiter(refer_to(target), refer_to(record), node);
  if (target.mail->push(result->enlisting_)) return result;
  delete result;
  return nullptr;
}

bool remote_awaiter::give_up() noexcept {
  auto expectation = progress::waiting;
  if (!stage_.compare_exchange_strong(expectation, progress::given_up)) return false;
  if (!target_.get()->mail->push(fetching_)) delete this;
  return true;
}

void remote_awaiter::come_home(thread_state& home) noexcept {
  if (abandoned_) {
    delete this;
    return;
  }
  complete_ = true;
  if (node_ != nullptr) {
    node_->win(home);
  } else {
    home.resume(wait, wake_reason::handed);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
