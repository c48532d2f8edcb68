// SPDX-License-Identifier: MIT
// Many readers or one writer, in order of arrival: readers that come after a waiting writer do not
// overtake it, nor does a writer overtake readers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/atomic.hpp>
#include <motet/sync/mutex.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename Sharing>
class basic_shared_mutex {
 public:
  basic_shared_mutex() = default;
  basic_shared_mutex(const basic_shared_mutex&) = delete;
  basic_shared_mutex& operator=(const basic_shared_mutex&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_shared_mutex() { waiters_.detach_all(sharing_); }

  /// Waits until there is neither a reader nor a writer, and takes the mutex as the writer.
  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if the caller is the writer already,
  ///         or if the mutex is destroyed meanwhile.
  void lock() { wait_for(writing); }

  /// Takes the mutex as the writer if there is neither a reader nor a writer.
  /// Not a switchpoint.
  bool try_lock() {
    thread_core* thread = self_core();
    const std::lock_guard lock(sharing_);
    return acquire_now(thread, writing, free_for(writing));
  }

  /// Gives up what lock() took.
  /// Not a switchpoint.
  /// Throws: std::logic_error, without effect, if the caller is not the writer.
  void unlock() {
    give_up([](thread_core* thread, basic_shared_mutex& self) {
      if (!is_mark_of(thread, self.writer())) return false;
      self.writer_.store(0, std::memory_order_relaxed);
      return true;
    });
  }

  /// Waits until there is no writer, and no earlier caller waits, and becomes a reader alongside
  /// the others. A reader must not call this again: a writer may have begun to wait in between.
  /// Switchpoint.
  /// Throws: as lock().
  void lock_shared() { wait_for(reading); }

  /// Becomes a reader alongside the others if that is possible without waiting.
  /// Not a switchpoint.
  bool try_lock_shared() {
    thread_core* thread = self_core();
    const std::lock_guard lock(sharing_);
    return acquire_now(thread, reading, free_for(reading) && !waiters_.anybody());
  }

  /// Gives up what lock_shared() took.
  /// Not a switchpoint.
  /// Throws: std::logic_error, without effect, if there is no reader.
  void unlock_shared() {
    give_up([](thread_core*, basic_shared_mutex& self) {
      if (self.readers_ == 0) return false;
      --self.readers_;
      return true;
    });
  }

  /// Returns: the mutex's state; takes time linear in the number of waiters. Not a switchpoint.
  lock_stats stats() {
    const std::lock_guard lock(sharing_);
    return {writer() != 0, readers_, waiters_.size()};
  }

 private:
  enum way : std::size_t { reading, writing };

  std::uintptr_t writer() const noexcept { return writer_.load(std::memory_order_relaxed); }

  bool free_for(std::size_t mode) const noexcept {
    return writer() == 0 && (mode == reading || readers_ == 0);
  }

  void acquire(std::size_t mode, std::uintptr_t mark) noexcept {
    if (mode == writing) {
      writer_.store(mark, std::memory_order_relaxed);
    } else {
      ++readers_;
    }
  }

  bool acquire_now(thread_core* thread, way mode, bool possible) noexcept {
    if (possible) {
      acquire(mode, holder_mark(thread));
    } else if (thread != nullptr) {
      thread->backs_off(true);
    }
    return possible;
  }

  void wait_for(way mode) {
    thread_core* thread = Sharing::enter();
    const std::uintptr_t me = holder_mark(thread);
    if (thread != nullptr) thread->backs_off(false);
    sharing_.lock();
    do {
      if (is_mark_of(thread, writer())) {
        sharing_.unlock();
        refuse_to_lock_again();
      }
      if (free_for(mode) && !waiters_.anybody()) {
        acquire(mode, me);
        sharing_.unlock();
        return;
      }
    } while (sharing_.becomes_fiber(thread));
    candidate node(*this, thread, mode, me);
    waiters_.push_back(node);
    sharing_.unlock();
    wait_in_line(node, thread);
    if (node.refused) [[unlikely]]
      lock_again(thread, mode, me);
  }

  /// At the front of the queue: locks if possible, or waits ahead of all others.
  void lock_again(thread_core* thread, way mode, std::uintptr_t me) {
    for (;;) {
      wake_list waiters;
      sharing_.lock();
      waiters_.arrived();
      if (free_for(mode)) {
        acquire(mode, me);
        choose(waiters, thread);
        sharing_.unlock();
        waiters.notify(thread);
        return;
      }
      candidate node(*this, thread, mode, me);
      waiters_.push_front(node);
      sharing_.unlock();
      wait_in_line(node, thread);
      if (!node.refused) return;
    }
  }

  template <typename Change>
  void give_up(Change change) {
    thread_core* thread = self_core();
    wake_list waiters;
    sharing_.lock();
    if (!change(thread, *this)) {
      sharing_.unlock();
      refuse_to_unlock();
    }
    // As in basic_mutex::unlock(): a lock that std::lock() gives up is not handed on.
    if (thread != nullptr && thread->backs_off()) {
      invite(waiters, thread);
    } else {
      choose(waiters, thread);
    }
    sharing_.unlock();
    waiters.notify(thread);
  }

  struct candidate : single_wait {
    candidate(const basic_shared_mutex& wanted_by, thread_core* thread, way mode,
              std::uintptr_t me) noexcept
        : single_wait(mode == reading ? "lock_shared of a mutex" : "lock of a mutex", &wanted_by,
                      wanted_by.writer_, thread, Sharing::shared),
          mark(me) {
      number = mode;
    }
    std::uintptr_t mark;
  };

  void wait_in_line(candidate& node, thread_core* thread) {
    // Readers behind an interrupted writer may now be able to proceed.
    wait_on(sharing_, node, [&](wake_list& waiters) { choose(waiters, thread); });
  }

  /// Lets waiters in from the front, until the first that cannot have the mutex now.
  void choose(wake_list& waiters, const thread_core* chooser) noexcept {
    while (wait_node* next = waiters_.first_open()) {
      if (!free_for(next->number)) return;
      if (!wait_list::take(*next, chooser)) continue;  // interrupted just now
      acquire(next->number, static_cast<candidate*>(next)->mark);
      waiters.add(*next);
    }
  }

  /// Wakes the first waiter if it could have the mutex, but does not give it the mutex: the waiter
  /// looks again.
  void invite(wake_list& waiters, const thread_core* chooser) noexcept {
    while (wait_node* next = waiters_.first_open()) {
      if (!free_for(next->number)) return;
      if (!wait_list::take(*next, chooser)) continue;  // interrupted just now
      waiters_.expect(*next);
      waiters.add(*next);
      return;
    }
  }

  Sharing sharing_;
  std::size_t readers_ = 0;
  detail::atomic<std::uintptr_t> writer_{0};  // written under the lock
  wait_list waiters_;
};

}  // namespace detail

/// A lock for many readers or one writer, fibers or threads.
using shared_mutex = detail::basic_shared_mutex<detail::shared_policy>;

namespace local {
/// The same for the fibers of one thread.
using shared_mutex = detail::basic_shared_mutex<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
