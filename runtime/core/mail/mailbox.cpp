// SPDX-License-Identifier: MIT
// See core/mail/mailbox.hpp. No wake-up is lost: a sender fills the inbox and then reads the sleep
// flag; the thread sets the flag and then reads the inbox. By sequential consistency, at least one
// of them sees the other's write.
#include "core/mail/mailbox.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <motet/base/errors.hpp>
#include <motet/detail/base/race_point.hpp>
#include <utility>

#include "base/faults.hpp"
#include "platform/cores.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// All mailboxes of the process. Never destroyed, because threads may outlive statics.
struct mailbox::registry {
  std::mutex lock;
  list<mailbox, mailboxes_tag> members;

  static registry& get() {
    static constinit registry instance;
    return instance;
  }
};

mailbox::mailbox(unopened) noexcept {
  registry& mailboxes = registry::get();
  const std::lock_guard guard(mailboxes.lock);
  mailboxes.members.push_back(*this);
}

mailbox::mailbox() : mailbox(unopened{}) {
  open();
}

void mailbox::open() {
  wake_descriptor_ = faults::call("eventfd", ::eventfd, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_descriptor_ < 0) throw_errno(errno, "eventfd");
  if (filled()) wake();  // the thread that filled it found no descriptor to write to
}

mailbox::~mailbox() {
  {
    const std::lock_guard guard(registry::get().lock);
    unlink();
  }
  if (wake_descriptor_ >= 0) ::close(wake_descriptor_);
}

void mailbox::for_each(const std::function<void(mailbox&)>& f) {
  registry& mailboxes = registry::get();
  const std::lock_guard guard(mailboxes.lock);
  for (mailbox* box = mailboxes.members.front(); box != nullptr;
       box = mailboxes.members.next(*box)) {
    f(*box);
  }
}

void mailbox::lock_all() noexcept {
  registry& mailboxes = registry::get();
  mailboxes.lock.lock();
  for (mailbox* box = mailboxes.members.front(); box != nullptr;
       box = mailboxes.members.next(*box)) {
    box->lock_.lock();
  }
}

void mailbox::unlock_all() noexcept {
  registry& mailboxes = registry::get();
  for (mailbox* box = mailboxes.members.front(); box != nullptr;
       box = mailboxes.members.next(*box)) {
    box->lock_.unlock();
  }
  mailboxes.lock.unlock();
}

void mailbox::abandon_all() noexcept {
  registry& mailboxes = registry::get();
  for (mailbox* box = mailboxes.members.front(); box != nullptr;
       box = mailboxes.members.next(*box)) {
    box->closed_ = true;
    box->first_ = box->last_ = nullptr;
    box->filled_.store(false);
    ::close(std::exchange(box->wake_descriptor_, -1));
  }
  unlock_all();
}

bool mailbox::push(post& item) noexcept {
  race_point();
  const std::lock_guard guard(lock_);
  return push_locked(item);
}

bool mailbox::push_locked(post& item) noexcept {
  if (!append(item)) return false;
  // Under the lock: the thread cannot end, and close the descriptor, before we are done with it.
  end_sleep();
  return true;
}

bool mailbox::append(post& item) noexcept {
  if (closed_) return false;
  item.next = nullptr;
  *(first_ == nullptr ? &first_ : &last_->next) = &item;
  last_ = &item;
  filled_.store(true);
  race_point();
  return true;
}

/// The state changes before the push: a polling thread that saw the item first would be awake
/// already.
bool mailbox::push_to_idle(post& item) noexcept {
  race_point();
  const std::lock_guard guard(lock_);
  rest expectation = rest::looking;
  const bool looked = !closed_ && resting_.compare_exchange_strong(expectation, rest::awake);
  return append(item) && (end_sleep() || looked);
}

bool mailbox::nudge() noexcept {
  filled_.store(true);
  return end_sleep();
}

/// The thread that ends the sleep, this or another one, also ends its idleness: so a thread that
/// has been given something does not count as idle.
mailbox::rest mailbox::take_sleep() noexcept {
  const rest state = resting_.exchange(rest::awake);
  if (state == rest::idle) idle_workers.fetch_sub(1);
  return state;
}

bool mailbox::end_sleep() noexcept {
  const rest state = resting_.load() == rest::awake ? rest::awake : take_sleep();
  if (state == rest::asleep || state == rest::idle) wake();
  return state != rest::awake;
}

void mailbox::wake() noexcept {
  if (wake_descriptor_ < 0) return;  // its thread looks by itself
  const std::uint64_t value = 1;
  [[maybe_unused]] const ssize_t bytes_written = ::write(wake_descriptor_, &value, sizeof value);
}

post* mailbox::take() noexcept {
  const std::lock_guard guard(lock_);
  filled_.store(false, std::memory_order_relaxed);
  post* posts = first_;
  first_ = last_ = nullptr;
  return posts;
}

bool mailbox::announce_sleep(bool idle) noexcept {
  if (idle) idle_workers.fetch_add(1);
  resting_.store(idle ? rest::idle : rest::asleep);
  race_point();
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

}}}  // namespace motet::MOTET_ABI::detail
