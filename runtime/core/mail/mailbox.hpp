// SPDX-License-Identifier: MIT
// What other threads post to a thread, and how they end its sleep: the inbox, the sleep flag and
// the wake descriptor. Outlives its thread for as long as a control block refers to it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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

  /// Guards the inbox and whatever foreign threads keep in this thread's control blocks.
  std::mutex& lock() noexcept { return lock_; }

  /// Leaves `item` and wakes the thread if it sleeps. Any thread.
  /// Returns: false if the thread has ended; `item` is the caller's again.
  bool push(post& item) noexcept;
  /// The same, for a caller that holds lock().
  bool push_locked(post& item) noexcept;
  /// The same. Returns: whether the thread had nothing to run, and slept or waited awake.
  bool push_to_idle(post& item) noexcept;
  /// Any thread, lock() held.
  bool closed() const noexcept { return closed_; }

  /// The byte that another thread reads to learn whether this one rests: 0 if it does not.
  const std::uint8_t* rest_address() const noexcept {
    return reinterpret_cast<const std::uint8_t*>(&resting_);
  }

  // The rest is for the thread itself.
  bool filled() const noexcept { return filled_.load(std::memory_order_acquire); }
  /// Returns: all posts, oldest first.
  post* take() noexcept;
  /// From here to awake() this thread, which has nothing to run, looks at filled() all the time.
  void announce_look() noexcept { resting_.store(rest::looking, std::memory_order_relaxed); }
  /// From here to awake(), a thread that posts an item also wakes this one. `idle`: the thread
  /// counts as one of the idle_workers until then. Returns: false if an item has been posted
  /// already; then the thread must not sleep.
  bool announce_sleep(bool idle) noexcept;
  void awake() noexcept {
    if (resting_.load(std::memory_order_relaxed) != rest::awake) take_sleep();
  }
  /// Has the thread look at its inbox, and ends its sleep. For a signal handler that runs on it.
  /// Returns: whether it sleeps, or is about to.
  bool nudge() noexcept;
  int wake_descriptor() const noexcept { return wake_descriptor_; }
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

  enum class rest : std::uint8_t { awake, looking, asleep, idle };

  bool append(post& item) noexcept;
  bool end_sleep() noexcept;
  rest take_sleep() noexcept;
  void wake() noexcept;

  std::mutex lock_;
  post* first_ = nullptr;
  post* last_ = nullptr;
  bool closed_ = false;
  std::atomic<bool> filled_{false};
  std::atomic<rest> resting_{rest::awake};
  std::thread::id thread_ = std::this_thread::get_id();
  const pid_t number_of_thread_ = ::gettid();
  int wake_descriptor_ = -1;
};

}}}  // namespace motet::MOTET_ABI::detail
