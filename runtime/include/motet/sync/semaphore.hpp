// SPDX-License-Identifier: MIT
// A number of permits, given out in order of arrival.
#pragma once

#include <cstddef>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/sync/wait_list.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI {

/// A semaphore's figures, for monitoring.
struct semaphore_stats {
  std::ptrdiff_t limit = 0;
  std::ptrdiff_t free = 0;  // below 0 after set_limit() to fewer permits than are taken
  std::size_t waiting = 0;  // fibers and threads
  bool closed = false;
};

namespace detail {

[[noreturn]] void refuse_permits();
[[noreturn]] void throw_semaphore_closed();

template <typename Sharing>
class basic_semaphore {
 public:
  /// Starts with `limit` permits.
  explicit basic_semaphore(std::ptrdiff_t limit) : limit_(limit), free_(limit) {
    if (limit < 0) refuse_permits();
  }
  basic_semaphore(const basic_semaphore&) = delete;
  basic_semaphore& operator=(const basic_semaphore&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_semaphore() { waiters_.detach_all(sharing_); }

  /// Waits until `count` permits are free and all earlier callers have got theirs, and takes them.
  /// A caller that asks for more permits than the limit waits, and so do all later callers, until
  /// release() or set_limit() has added enough.
  /// Switchpoint.
  /// Throws: a pending interruption; semaphore_closed; std::invalid_argument if `count` is
  ///         not positive; std::logic_error if the semaphore is destroyed meanwhile.
  void acquire(std::ptrdiff_t count = 1) {
    if (count <= 0) refuse_permits();
    thread_core* thread = Sharing::enter();
    sharing_.lock();
    do {
      const answer result = acquire_now(count, waiters_.front() != nullptr);
      if (result != answer::wait) {
        sharing_.unlock();
        if (result == answer::closed) throw_semaphore_closed();
        return;
      }
    } while (sharing_.becomes_fiber(thread));
    single_wait node("acquire of a semaphore", this, thread, Sharing::shared);
    node.number = static_cast<std::size_t>(count);
    waiters_.push_back(node);
    sharing_.unlock();
    // Waiters behind an interrupted one may need fewer permits than it did.
    wait_on(sharing_, node, [&](wake_list& waiters) { choose(waiters, thread); });
    if (node.refused) throw_semaphore_closed();
  }

  /// Takes `count` permits if that needs no waiting.
  /// Not a switchpoint.
  /// Throws: semaphore_closed; std::invalid_argument if `count` is not positive.
  bool try_acquire(std::ptrdiff_t count = 1) {
    if (count <= 0) refuse_permits();
    sharing_.lock();
    const answer result = acquire_now(count, waiters_.front() != nullptr);
    sharing_.unlock();
    if (result == answer::closed) throw_semaphore_closed();
    return result == answer::done;
  }

  /// Gives `count` permits back, or adds new ones.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument, without effect, if `count` is not positive, or there would be
  ///         more permits than a std::ptrdiff_t can count.
  void release(std::ptrdiff_t count = 1) {
    if (count <= 0) refuse_permits();
    change([&] { return add(count); });
  }

  /// Changes the total number of permits to `limit`. If more are acquired at present, the surplus
  /// is withdrawn as they are released.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument, without effect, if `limit` is negative, or as release().
  void set_limit(std::ptrdiff_t limit) {
    if (limit < 0) refuse_permits();
    change([&] {
      if (!add(limit - limit_)) return false;
      limit_ = limit;
      return true;
    });
  }

  /// Closes the semaphore: every acquire() that waits, or comes later, throws semaphore_closed.
  /// Permits can still be released. Closing it again changes nothing.
  /// Not a switchpoint.
  void close() {
    thread_core* thread = self_core();
    wake_list waiters;
    sharing_.lock();
    closed_ = true;
    while (wait_node* next = waiters_.choose(thread)) {
      next->refused = true;
      waiters.add(*next);
    }
    sharing_.unlock();
    waiters.notify(thread);
  }

  /// Returns: the semaphore's state; takes time linear in the number of waiters. Not a switchpoint.
  semaphore_stats stats() {
    const std::lock_guard lock(sharing_);
    return {limit_, free_, waiters_.size(), closed_};
  }

 private:
  template <typename>
  friend struct acquire_case;

  enum class answer { done, closed, wait };

  /// Called under the lock.
  answer acquire_now(std::ptrdiff_t count, bool others_wait) noexcept {
    if (closed_) return answer::closed;
    if (free_ < count || others_wait) return answer::wait;
    free_ -= count;
    return answer::done;
  }

  template <typename Change>
  void change(Change mutation) {
    thread_core* thread = self_core();
    wake_list waiters;
    sharing_.lock();
    const bool possible = mutation();
    if (possible) choose(waiters, thread);
    sharing_.unlock();
    if (!possible) refuse_permits();
    waiters.notify(thread);
  }

  /// Returns: false, without effect, if there would be more permits than can be counted.
  bool add(std::ptrdiff_t permits) noexcept {
    std::ptrdiff_t sum = 0;
    if (__builtin_add_overflow(free_, permits, &sum)) return false;
    free_ = sum;
    return true;
  }

  void choose(wake_list& waiters, const thread_core* chooser) noexcept {
    while (wait_node* next = waiters_.first_open()) {
      const auto size = static_cast<std::ptrdiff_t>(next->number);
      if (size > free_) return;
      if (!wait_list::take(*next, chooser)) continue;  // interrupted just now
      free_ -= size;
      waiters.add(*next);
    }
  }

  Sharing sharing_;
  std::ptrdiff_t limit_;
  std::ptrdiff_t free_;
  bool closed_ = false;
  wait_list waiters_;
};

}  // namespace detail

/// Permits that are given back when this is destroyed. The semaphore must outlive it.
template <typename Semaphore>
class [[nodiscard]] permit_guard {
 public:
  /// Waits for `count` permits and takes them.
  /// Switchpoint.
  /// Throws: as the semaphore's acquire().
  explicit permit_guard(Semaphore& semaphore, std::ptrdiff_t count = 1)
      : semaphore_(&semaphore), count_(count) {
    semaphore.acquire(count);
  }
  permit_guard(permit_guard&& other) noexcept
      : semaphore_(detail::taken(other.semaphore_)), count_(other.count_) {}
  permit_guard& operator=(permit_guard&&) = delete;
  /// Not a switchpoint.
  ~permit_guard() {
    if (semaphore_ != nullptr) semaphore_->release(count_);
  }

 private:
  Semaphore* semaphore_;
  std::ptrdiff_t count_;
};

/// Between fibers and threads.
using semaphore = detail::basic_semaphore<detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
using semaphore = detail::basic_semaphore<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
