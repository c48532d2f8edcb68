// SPDX-License-Identifier: MIT
// See mailbox.hpp. No wake is lost: a sender fills the inbox and then looks at the sleep flag, the
// thread raises the flag and then looks at the inbox; sequential consistency lets one of them see
// the other.
#include "mailbox.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <motet/errors.hpp>

#include "jitter.hpp"

namespace motet::detail {

mailbox::mailbox() : wake_descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_descriptor_ < 0) throw_errno(errno, "eventfd");
}

mailbox::~mailbox() {
  ::close(wake_descriptor_);
}

bool mailbox::push(post& item) noexcept {
  jitter();
  const std::lock_guard guard(lock_);
  return push_locked(item);
}

bool mailbox::push_locked(post& item) noexcept {
  if (closed_) return false;
  item.next = nullptr;
  *(first_ == nullptr ? &first_ : &last_->next) = &item;
  last_ = &item;
  filled_.store(true);
  jitter();
  // Under the lock: the thread cannot end, and close the descriptor, before we are done with it.
  if (asleep_.load() && asleep_.exchange(false)) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
  }
  return true;
}

post* mailbox::take() noexcept {
  const std::lock_guard guard(lock_);
  filled_.store(false, std::memory_order_relaxed);
  post* all = first_;
  first_ = last_ = nullptr;
  return all;
}

bool mailbox::announce_sleep() noexcept {
  asleep_.store(true);
  jitter();
  if (!filled_.load()) return true;
  awake();
  return false;
}

bool mailbox::close() noexcept {
  const std::lock_guard guard(lock_);
  if (first_ != nullptr) return false;
  closed_ = true;
  return true;
}

}  // namespace motet::detail
