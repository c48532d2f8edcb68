// SPDX-License-Identifier: MIT
// Waiting on a primitive. A fiber or thread that waits has a waiter, whose wait ends once, and a
// wait node in the list of the primitive; a select() has a node in each of several lists. A thread
// that has something to hand over chooses, under the primitive's lock, the first waiter that is
// still open, hands the thing to it, and notifies it. A chosen waiter stays in its frame until it
// is notified. If a wait ends otherwise, its nodes are removed by its own fiber, or by the
// primitive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/list.hpp>
#include <motet/detail/base/post.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/detail/platform/one_shot_event.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct wait_node;
struct wait_nodes_tag;

/// One wait on primitives, in the frame of the fiber, or of the thread without fibers, that waits.
class waiter : public post {
 public:
  /// `thread` is null for a thread without fibers.
  waiter(const char* description, thread_core* thread, bool shared) noexcept
      : wait(description), fiber(thread == nullptr ? nullptr : &thread->running()), home_(thread) {
    wait.shared = shared;
  }

  /// Waits until the waiter is notified, or the wait is interrupted.
  /// Returns: whether the waiter was notified.
  [[gnu::always_inline]] bool park() noexcept {
    if (home_ == nullptr) [[unlikely]]
      return block();
    if (notified_) [[unlikely]] {
      home_->snooze();
      return true;
    }
    parked_ = true;
    return home_->park(wait) == wake_reason::handed;
  }

  /// Returns: whether the waiter could still be chosen.
  bool open() const noexcept { return wait.ended() == wake_reason::none; }

  /// Claims the wait. The primitive's lock is held.
  /// Returns: whether the waiter could be chosen.
  [[gnu::always_inline]] bool choose(const thread_core* chooser) noexcept {
    // No other thread can choose a waiter that stands in this list alone, nor can its own thread,
    // which is the caller, end the wait now.
    if (chooser == home_ && chooser != nullptr && !in_many) [[likely]] {
      return wait.claim_unshared(wake_reason::handed);
    }
    return wait.claim(wake_reason::handed);
  }

  /// Ends the wait of a chosen waiter, and with that perhaps its lifetime. No lock is held.
  [[gnu::always_inline]] void notify(thread_core* notifier) noexcept {
    if (home_ == notifier && notifier != nullptr) [[likely]] {
      wake(*notifier);
    } else {
      notify_remotely();
    }
  }

  wait_record wait;
  control_block* const fiber;  // any thread may read it, unlike `wait`; null: thread without fibers
  wait_node* winner = nullptr;  // the node by which the waiter was chosen
  bool in_many = false;         // it has nodes in several lists
  bool destroyed = false;       // the primitive was destroyed during the wait

 private:
  bool block() noexcept;
  void notify_remotely() noexcept;
  /// Called on the waiter's own thread, perhaps before its fiber has reached park().
  void wake(thread_core& home) noexcept {
    if (parked_) [[likely]] {
      home.make_runnable(*fiber);
    } else {
      notified_ = true;
    }
  }

  thread_core* home_;
  bool parked_ = false;
  bool notified_ = false;
  one_shot_event event_;
};

/// A waiter's node in one list.
struct wait_node : tagged_link<wait_nodes_tag> {
  wait_node() = default;
  explicit wait_node(waiter& parent) noexcept : owner(&parent) {}

  waiter* owner = nullptr;
  void* slot = nullptr;    // the item the fiber brings, or the storage for the item it waits for
  std::size_t number = 0;  // depends on the primitive: permits, the kind of lock, a holder's mark
  bool refused = false;    // notified, but without the awaited item
  bool list_gone = false;  // the primitive ended after the waiter had ended otherwise

  /// Chooses the waiter by this node, and makes its fiber runnable. Called on its home thread.
  /// Returns: false if the wait had ended.
  bool win(thread_core& home) noexcept {
    if (!owner->wait.claim(wake_reason::handed)) return false;
    owner->winner = this;
    home.make_runnable(*owner->fiber);
    return true;
  }

  void enter() noexcept { membership_.store(membership::listed, std::memory_order_relaxed); }
  /// Called by the waiter's own fiber, which then removes the node from its list.
  /// Returns: false if the node is in no list any more; the list may have been destroyed.
  bool leave() noexcept {
    membership current = membership::listed;
    if (membership_.compare_exchange_strong(current, membership::leaving)) return true;
    await_detached();
    return false;
  }
  /// Takes the node, whose waiter has ended otherwise, out of its list. The list's lock is held.
  /// Returns: false if the waiter's own fiber is already doing so.
  bool detach(bool list_ends = false) noexcept {
    membership current = membership::listed;
    if (!membership_.compare_exchange_strong(current, membership::detaching)) return false;
    unlink();
    list_gone = list_ends;
    membership_.store(membership::detached, std::memory_order_release);  // may destroy *this
    return true;
  }

 private:
  void await_detached() const noexcept;

  enum class membership : std::uint8_t { listed, leaving, detaching, detached };
  atomic<membership> membership_{membership::detached};
};

/// A waiter on one primitive, `subject`, with its node.
struct single_wait : wait_node {
  single_wait(const char* description, const void* subject, thread_core* thread,
              bool shared) noexcept
      : wait_node(lone_waiter), lone_waiter(description, thread, shared) {
    lone_waiter.wait.subject = reinterpret_cast<std::intptr_t>(subject);
    lone_waiter.wait.kind = wait_kind::object;
  }
  /// The same for a lock, whose holder's mark is in `holder`.
  single_wait(const char* description, const void* subject, const atomic<std::uintptr_t>& holder,
              thread_core* thread, bool shared) noexcept
      : single_wait(description, subject, thread, shared) {
    lone_waiter.wait.holder = &holder;
    lone_waiter.wait.kind = wait_kind::lock;
  }
  waiter lone_waiter;
};

[[noreturn]] void throw_destroyed();
/// Called after a wait whose waiter was not notified.
[[noreturn]] void throw_interruption();

/// Chosen waiters, to be notified once the primitive's lock has been released.
class wake_list {
 public:
  void add(wait_node& node) noexcept { nodes_.push_back(node); }
  /// Returns: the number of waiters notified.
  std::size_t notify(thread_core* notifier) noexcept {
    std::size_t count = 0;
    while (wait_node* node = nodes_.pop_front()) {
      node->owner->notify(notifier);
      ++count;
    }
    return count;
  }

 private:
  list<wait_node, wait_nodes_tag> nodes_;
};

/// Takes `node`, whose waiter was interrupted, out of its list, unless the primitive has done so or
/// has ended. `cleanup()` is called under the primitive's lock.
template <typename Sharing, typename Then>
void leave(Sharing& sharing, wait_node& node, Then&& cleanup) noexcept {
  if (!node.leave()) return;
  const std::lock_guard lock(sharing);
  node.unlink();
  cleanup();
}

/// Waits, after `node` has entered a list and the primitive's lock has been released.
/// Throws: what interrupts the wait; std::logic_error if the primitive is destroyed. An interrupted
///         wait first calls `choose(waiters)` under the lock: waiters behind `node` may have waited
///         only because `node` was in front of them.
template <typename Sharing, typename Choose>
[[gnu::always_inline]] inline void wait_on(Sharing& sharing, single_wait& node, Choose&& choose) {
  if (node.lone_waiter.park()) [[likely]] {
    if (node.lone_waiter.destroyed) [[unlikely]]
      throw_destroyed();
    return;
  }
  wake_list waiters;
  leave(sharing, node, [&] { choose(waiters); });
  waiters.notify(self_core());
  throw_interruption();
}

/// The same for primitives whose waiters never hold up those behind them.
template <typename Sharing>
[[gnu::always_inline]] inline void wait_on(Sharing& sharing, single_wait& node) {
  wait_on(sharing, node, [](wake_list&) {});
}

}}}  // namespace motet::MOTET_ABI::detail
