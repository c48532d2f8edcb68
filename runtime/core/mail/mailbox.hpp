// SPDX-License-Identifier: MIT
// What other threads post to a thread, and how they end its sleep: one word, with the newest post
// and what the thread does, and the wake descriptor. Outlives its thread for as long as a control
// block refers to it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/list.hpp>
#include <motet/detail/base/post.hpp>
#include <mutex>
#include <thread>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class mailbox : public tagged_link<struct mailboxes_tag> {
 public:
  /// Throws: std::system_error if there is no descriptor for it.
  mailbox();
  /// A mailbox without a descriptor: until open() its thread is not woken, but looks by itself.
  struct unopened {};
  explicit mailbox(unopened) noexcept;
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  /// Guards whatever foreign threads keep in this thread's control blocks. The mailbox is not
  /// closed while it is held.
  std::mutex& lock() noexcept { return lock_; }

  /// Leaves `item` and wakes the thread if it sleeps. Any thread, with or without lock().
  /// Returns: false if the thread has ended; `item` is the caller's again.
  bool push(post& item) noexcept { return push_and_wake(item) != reception::refused; }
  /// The same. Returns: whether the thread had nothing to run, and slept or waited awake.
  bool push_to_idle(post& item) noexcept { return ended_rest(push_and_wake(item)); }

  /// Pushes a post under a lock that its handler takes, and wakes the thread at the end of the
  /// scope. Declared before the lock's guard, because a woken thread would at once wait for the
  /// lock.
  class deferred_wake {
   public:
    deferred_wake() noexcept = default;
    deferred_wake(const deferred_wake&) = delete;
    deferred_wake& operator=(const deferred_wake&) = delete;
    ~deferred_wake() {
      if (sleeper_ != nullptr) sleeper_->finish_wake();
    }
    /// As mailbox::push(), but at most once.
    bool push(mailbox& target, post& item) noexcept {
      const reception result = target.push_without_wake(item);
      if (result == reception::ended_sleep) sleeper_ = &target;
      return result != reception::refused;
    }

   private:
    mailbox* sleeper_ = nullptr;  // does not end until it is woken
  };

  /// Any thread; lasts while lock() is held, if false.
  bool closed() const noexcept { return word_.load(std::memory_order_relaxed) == closed_word; }

  /// The word that another thread reads to learn whether this one rests.
  const std::uintptr_t* word_address() const noexcept {
    return reinterpret_cast<const std::uintptr_t*>(&word_);
  }
  static bool rests(std::uintptr_t word) noexcept {
    return word == looking || word == asleep || word == idle;
  }

  // The rest is for the thread itself.
  bool filled() const noexcept { return word_.load(std::memory_order_acquire) > closed_word; }
  /// Returns: all posts, oldest first.
  post* take() noexcept;
  /// From here to awake() this thread, which has nothing to run, looks at filled() all the time.
  void announce_look() noexcept { announce(looking); }
  /// From here to awake(), a thread that posts an item also wakes this one. `is_idle`: the thread
  /// counts as one of the idle_workers until then. Returns: false if an item has been posted
  /// already; then the thread must not sleep.
  bool announce_sleep(bool is_idle) noexcept;
  void awake() noexcept {
    const std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    if (rests(seen)) end_own_rest(seen);
  }
  /// Has the thread look at its inbox, and ends its sleep. For a signal handler that runs on it.
  /// Returns: whether it sleeps, or is about to.
  bool nudge() noexcept;
  int wake_descriptor() const noexcept { return wake_descriptor_.load(std::memory_order_relaxed); }
  /// Throws: as the constructor.
  void open();
  /// Returns: false, and stays open, if there are posts.
  bool close() noexcept;

  /// The thread it belongs, or belonged, to.
  std::thread::id thread() const noexcept { return thread_; }
  /// The kernel's number of that thread.
  pid_t number_of_thread() const noexcept { return number_of_thread_; }

  /// Control blocks that refer to it. At home while open, under lock() afterwards.
  std::size_t blocks = 0;
  // Called around a fork, so that no other thread holds a lock when the child's copy is made.
  static void lock_all() noexcept;
  static void unlock_all() noexcept;
  /// In the child, instead of unlock_all(): closes all, because their threads do not exist.
  static void abandon_all() noexcept;

  /// Calls `f` for each mailbox of the process, closed ones included, under a lock: `f` must make
  /// and end none.
  static void for_each(const std::function<void(mailbox&)>& f);

  /// Destroys a closed mailbox to which no block refers.
  static void dispose(mailbox* box) noexcept { delete box; }

 private:
  ~mailbox();

  struct registry;

  // The word is one of these, or the address of the newest post; then the thread is awake.
  static constexpr std::uintptr_t awake_word = 0;
  static constexpr std::uintptr_t looking = 1;
  static constexpr std::uintptr_t asleep = 2;
  static constexpr std::uintptr_t idle = 3;
  static constexpr std::uintptr_t closed_word = 4;

  enum class reception : std::uint8_t { refused, accepted, ended_look, ended_sleep };
  static bool ended_rest(reception result) noexcept {
    return result == reception::ended_look || result == reception::ended_sleep;
  }

  reception push_and_wake(post& item) noexcept;
  reception push_without_wake(post& item) noexcept;
  bool replace(std::uintptr_t& seen, std::uintptr_t next) noexcept;
  bool replace_sleep(std::uintptr_t& seen, std::uintptr_t next) noexcept;
  void finish_wake() noexcept;
  bool announce(std::uintptr_t rest) noexcept;
  void end_own_rest(std::uintptr_t seen) noexcept;
  void wake() noexcept;

  std::mutex lock_;
  atomic<std::uintptr_t> word_{awake_word};
  atomic<unsigned> wakers_{0};  // threads that are about to write to the wake descriptor
  post nudge_;                  // of a signal handler
  std::atomic<bool> is_nudged_{false};
  std::thread::id thread_ = std::this_thread::get_id();
  const pid_t number_of_thread_ = ::gettid();
  std::atomic<int> wake_descriptor_{-1};  // others read it once they have ended a sleep
};

}}}  // namespace motet::MOTET_ABI::detail
