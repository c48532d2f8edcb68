// SPDX-License-Identifier: MIT
// See errand.hpp. The news is kept apart from the wait: an interruption may have ended that first.
#include "errand.hpp"

#include "mailbox.hpp"
#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

errand::errand(const char* what) noexcept : wait_(what), home_(self()) {
  if (home_ != nullptr) wait_.fiber = &home_->running();
  arrive = [](post& item, thread_state& home) noexcept {
    static_cast<errand&>(item).come_home(home);
  };
}

void errand::end() noexcept {
  if (home_ == nullptr) {
    gate_.open();
  } else if (home_ == self()) {
    come_home(*home_);
  } else {
    wait_.fiber->mail->push(*this);
  }
}

void errand::come_home(thread_state& home) noexcept {
  if (home.left_out(*wait_.fiber)) return;
  over_ = true;
  home.resume(wait_, wake_reason::handed);
}

bool errand::await() noexcept {
  if (home_ == nullptr) {
    gate_.wait();
    return true;
  }
  if (over_) return true;
  const control_block& fiber = home_->running();
  home_->pend(fiber);
  home_->park(wait_);
  home_->unpend(fiber);
  return over_;
}

void errand::await_end() noexcept {
  if (home_ == nullptr) {
    gate_.wait();
    return;
  }
  if (over_) return;
  wait_.reopen();
  wait_.interruptible = false;
  wait_.cancelling = true;
  home_->park_until_over(wait_);
}

}  // namespace motet::inline MOTET_ABI::detail
