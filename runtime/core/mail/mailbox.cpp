// SPDX-License-Identifier: MIT
// See core/mail/mailbox.hpp. No wake-up is lost: the word that a sender exchanges for its post says
// whether the thread sleeps, and a thread falls asleep only by exchanging a word without a post.
#include "core/mail/mailbox.hpp"

#include <sys/eventfd.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <motet/base/errors.hpp>
#include <motet/detail/base/race_point.hpp>

#include "base/faults.hpp"
#include "base/system_calls.hpp"
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
  const int fresh = faults::call("eventfd", ::eventfd, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fresh < 0) throw_errno(errno, "eventfd");
  wake_descriptor_.store(fresh);
  wake();  // a thread that has ended a sleep may have found no descriptor to write to
}

mailbox::~mailbox() {
  {
    const std::lock_guard guard(registry::get().lock);
    unlink();
  }
  if (wake_descriptor() >= 0) sys::close(wake_descriptor());
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
    box->word_.store(closed_word);
    box->wakers_.store(0);
    sys::close(box->wake_descriptor_.exchange(-1));
  }
  unlock_all();
}

/// What counts the thread as idle is subtracted first: once it is awake, another thread may post to
/// it, and must not find it idle.
/// Returns: false if the word was not `seen`, which it is now.
bool mailbox::replace(std::uintptr_t& seen, std::uintptr_t next) noexcept {
  const bool was_idle = seen == idle;
  if (was_idle) idle_workers.fetch_sub(1);
  if (word_.compare_exchange_strong(seen, next, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
    return true;
  }
  if (was_idle) idle_workers.fetch_add(1);
  return false;
}

/// The same for a thread that sleeps. If it succeeds, the thread does not end before finish_wake().
bool mailbox::replace_sleep(std::uintptr_t& seen, std::uintptr_t next) noexcept {
  wakers_.fetch_add(1, std::memory_order_relaxed);
  const bool replaced = replace(seen, next);
  if (!replaced) wakers_.fetch_sub(1, std::memory_order_release);
  return replaced;
}

void mailbox::finish_wake() noexcept {
  wake();
  wakers_.fetch_sub(1, std::memory_order_release);
}

/// A refusal synchronizes with the end of the thread.
/// Returns: `ended_sleep` if the caller must call finish_wake().
mailbox::reception mailbox::push_without_wake(post& item) noexcept {
  race_point();
  const auto next = reinterpret_cast<std::uintptr_t>(&item);
  std::uintptr_t seen = word_.load(std::memory_order_acquire);
  while (seen != closed_word) {
    const bool rested = rests(seen);
    const bool slept = rested && seen != looking;
    item.next = rested ? nullptr : reinterpret_cast<post*>(seen);
    const bool posted = slept ? replace_sleep(seen, next) : replace(seen, next);
    if (!posted) continue;
    if (!rested) return reception::accepted;
    return slept ? reception::ended_sleep : reception::ended_look;
  }
  return reception::refused;
}

mailbox::reception mailbox::push_and_wake(post& item) noexcept {
  const reception result = push_without_wake(item);
  if (result == reception::ended_sleep) finish_wake();
  return result;
}

bool mailbox::nudge() noexcept {
  return !is_nudged_.exchange(true) && ended_rest(push_and_wake(nudge_));
}

void mailbox::wake() noexcept {
  if (wake_descriptor() < 0) return;  // its thread looks by itself
  const std::uint64_t value = 1;
  [[maybe_unused]] const ssize_t bytes_written =
      sys::write(wake_descriptor(), &value, sizeof value);
}

post* mailbox::take() noexcept {
  if (!filled()) return nullptr;
  auto* item = reinterpret_cast<post*>(word_.exchange(awake_word, std::memory_order_acquire));
  post* oldest = nullptr;
  while (item != nullptr) {
    post* const before = item->next;
    if (item == &nudge_) {
      is_nudged_.store(false);
    } else {
      item->next = oldest;
      oldest = item;
    }
    item = before;
  }
  return oldest;
}

/// The thread may rest already: in a foreign loop, or in a poll of a poll.
/// Returns: false if there is a post.
bool mailbox::announce(std::uintptr_t rest) noexcept {
  std::uintptr_t seen = awake_word;
  return word_.compare_exchange_strong(seen, rest, std::memory_order_release,
                                       std::memory_order_relaxed) ||
         (rests(seen) && replace(seen, rest));
}

bool mailbox::announce_sleep(bool is_idle) noexcept {
  if (!announce(is_idle ? idle : asleep)) return false;
  race_point();
  if (is_idle) idle_workers.fetch_add(1);
  return true;
}

/// Unless another thread has done so.
void mailbox::end_own_rest(std::uintptr_t seen) noexcept {
  static_cast<void>(replace(seen, awake_word));
}

/// A nudge alone is no post: signals may come more often than a thread can close its mailbox.
bool mailbox::close() noexcept {
  {
    const std::lock_guard guard(lock_);
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    const bool is_nudged = seen == reinterpret_cast<std::uintptr_t>(&nudge_);
    const bool is_empty =
        seen == awake_word || rests(seen) || (is_nudged && nudge_.next == nullptr);
    if (!is_empty || !replace(seen, closed_word)) return false;
  }
  // A waker may have a lower priority than this thread, and need its processor.
  constexpr timespec nap{0, 50'000};
  while (wakers_.load(std::memory_order_acquire) != 0) sys::nanosleep(&nap, nullptr);
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
