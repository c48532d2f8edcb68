// SPDX-License-Identifier: MIT
// See sync/remote_awaiter.hpp.
#include "sync/remote_awaiter.hpp"

#include <utility>

#include "cancellation/child_failures.hpp"
#include "core/mail/mailbox.hpp"
#include "core/recording/recorder.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void enlist(awaiter& waiting, control_block& fiber) noexcept {
  if (!fiber.dead()) {
    fiber.awaiters.push_back(waiting);
    return;
  }
  ++fiber.references;  // notify() may give up the last other reference
  if (waiting.notify(waiting)) withdraw_failure(fiber);
  release_later(fiber);
}

remote_awaiter::remote_awaiter(handle awaited, handle from, wait_node* among) noexcept
    : target_(std::move(awaited)),
      from_(std::move(from)),
      block_(target_.get()),
      among_(among),
      claims_(among == nullptr) {
  wait.target = &block_;
  for (letter* each : {&enlisting_, &fetching_, &news_}) each->sender = this;
  enlisting_.handle_post = [](post& item, thread_state&) noexcept {
    remote_awaiter& self = *static_cast<letter&>(item).sender;
    enlist(self, *self.target_.get());
  };
  notify = [](awaiter& listed) noexcept {
    auto& self = static_cast<remote_awaiter&>(listed);
    const bool claims = self.claims_;
    auto expected = progress::waiting;
    if (!self.reached_.compare_exchange_strong(expected, progress::notified)) return false;
    note_post(*self.from_.get());
    self.from_.get()->mail->push(self.news_);
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

remote_awaiter* remote_awaiter::send(control_block& target, control_block& waiting,
                                     wait_node* among) {
  auto* sent = new remote_awaiter(refer_to(target), refer_to(waiting), among);
  if (target.mail->push(sent->enlisting_)) return sent;
  delete sent;
  return nullptr;
}

bool remote_awaiter::give_up() noexcept {
  auto expected = progress::waiting;
  if (!reached_.compare_exchange_strong(expected, progress::given_up)) return false;
  if (!target_.get()->mail->push(fetching_)) delete this;
  return true;
}

void remote_awaiter::come_home(thread_state& home) noexcept {
  if (abandoned_) {
    delete this;
    return;
  }
  over_ = true;
  if (among_ != nullptr) {
    among_->win(home);
  } else {
    home.resume(wait, wake_reason::handed);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
