// SPDX-License-Identifier: MIT
// The list of the waiters on a primitive, and how the primitive serves them one by one, or all
// together. See detail/sync/waiter.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/list.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/sync/sharing.hpp>
#include <motet/detail/sync/waiter.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The waiters on a primitive, in their order of arrival. Every call needs the primitive's lock,
/// except detach_all(), which acquires it.
class wait_list {
 public:
  void push_back(wait_node& node) noexcept {
    forget_gone();
    node.enter();
    nodes_.push_back(node);
  }

  void push_front(wait_node& node) noexcept {
    forget_gone();
    node.enter();
    nodes_.push_front(node);
  }

  /// Returns: the first node whose waiter is still open, without choosing it; or null.
  wait_node* front() noexcept {
    wait_node* node = first();
    while (node != nullptr && !node->owner->open()) node = nodes_.next(*node);
    return node;
  }

  /// The same, but first removes the nodes at the front whose waiters have ended.
  wait_node* first_open() noexcept {
    wait_node* node = first();
    while (node != nullptr && !node->owner->open()) node = next_after_ended(*node);
    return node;
  }

  /// Returns: the number of waiters in the list that are still open.
  std::size_t size() noexcept {
    forget_gone();
    std::size_t count = 0;
    for (wait_node* node = nodes_.front(); node != nullptr; node = nodes_.next(*node)) {
      if (node->owner->open()) ++count;
    }
    return count;
  }

  /// Returns: whether a waiter other than `asker` waits in the list.
  bool others_wait(const waiter& asker) noexcept {
    for (wait_node* node = first(); node != nullptr; node = nodes_.next(*node)) {
      if (node->owner != &asker && node->owner->open()) return true;
    }
    return false;
  }

  /// Returns: the first node whose waiter could be chosen, taken out of the list; or null.
  [[gnu::always_inline]] wait_node* choose(const thread_core* chooser) noexcept {
    wait_node* oldest = first();
    if (oldest == nullptr || take(*oldest, chooser)) [[likely]]
      return oldest;
    return choose_behind(*oldest, chooser);
  }

  /// Lets the waiter of `node` look again, without giving it anything. Until it calls arrived(),
  /// choose() and similar calls find no other waiter, so that none behind it is served first.
  void expect(wait_node& node) noexcept {
    node.refused = true;
    filled_in_ |= expecting;
  }
  void arrived() noexcept { filled_in_ &= ~expecting; }

  /// Returns: whether a waiter is in the list, or is expected to look again.
  bool anybody() noexcept {
    forget_gone();
    return (filled_in_ & expecting) != 0 || front() != nullptr;
  }

  /// Chooses the waiter of `node`, and removes `node` from the list.
  /// Returns: whether the waiter could be chosen.
  [[gnu::always_inline]] static bool take(wait_node& node, const thread_core* chooser) noexcept {
    if (!node.owner->choose(chooser)) return false;
    node.owner->winner = &node;
    node.unlink();
    return true;
  }

  /// Called when the primitive ends: ends every wait, which then throws std::logic_error.
  template <typename Sharing>
  void detach_all(Sharing& sharing) noexcept;

 private:
  wait_node* first() noexcept {
    if (nodes_.empty()) return nullptr;
    forget_gone();
    return (filled_in_ & expecting) == 0 ? nodes_.front() : nullptr;
  }

  /// A forked child forgets the waiters of its parent, without looking at their frames, which may
  /// be gone.
  void forget_gone() noexcept {
    if ((filled_in_ & ~expecting) == this_process()) [[likely]]
      return;
    nodes_.abandon();
    filled_in_ = this_process();
  }

  [[gnu::noinline]] wait_node* choose_behind(wait_node& first_choice,
                                             const thread_core* chooser) noexcept {
    wait_node* node = next_after_ended(first_choice);
    while (node != nullptr && !take(*node, chooser)) node = next_after_ended(*node);
    return node;
  }

  /// Takes `node`, whose waiter has ended, out of the list, unless its fiber is already doing so.
  /// Returns: the node behind `node`, or null.
  wait_node* next_after_ended(wait_node& node) noexcept {
    wait_node* next = nodes_.next(node);
    node.detach();
    return next;
  }

  list<wait_node, wait_nodes_tag> nodes_;
  static constexpr std::uint32_t expecting = std::uint32_t{1} << 31;
  std::uint32_t filled_in_ = 0;  // the process that filled the list, and the flag `expecting`
};

extern template void wait_list::detach_all(shared_policy&) noexcept;
extern template void wait_list::detach_all(local_policy&) noexcept;

/// The lock of a primitive, and the waits for its state, which the primitive reads and changes only
/// in the functions that it passes here. They are called under the lock: they are short, call no
/// switchpoint, and do not throw.
template <typename Sharing>
class wait_queue {
 public:
  wait_queue() = default;
  wait_queue(const wait_queue&) = delete;
  wait_queue& operator=(const wait_queue&) = delete;
  /// Waits that are still open throw std::logic_error.
  ~wait_queue() { waiters_.detach_all(sharing_); }

  /// Returns what `read()` returned.
  template <typename Read>
  auto look(Read&& read) {
    const std::lock_guard lock(sharing_);
    return read();
  }

  /// Waits for the next release_if(), unless `ready()` says that there is nothing to wait for.
  /// Throws: a pending interruption; std::logic_error if the queue ends meanwhile.
  template <typename Ready>
  void wait_unless(Ready&& ready, const char* description, const void* subject) {
    thread_core* thread = Sharing::enter();
    sharing_.lock();
    do {
      if (ready()) {
        sharing_.unlock();
        return;
      }
    } while (sharing_.becomes_fiber(thread));
    single_wait node(description, subject, thread, Sharing::shared);
    waiters_.push_back(node);
    sharing_.unlock();
    wait_on(sharing_, node);
  }

  /// Calls `change()`, and ends every wait, in order, if it returns true.
  template <typename Change>
  void release_if(Change&& change) {
    sharing_.lock();
    release(change());
  }
  /// The same for a destructor, in which a local queue does not check the calling thread.
  template <typename Change>
  void release_at_end(Change&& change) noexcept {
    sharing_.lock_at_end();
    change();
    release(true);
  }

  /// For a select(): `node` waits as well, unless `ready()`.
  /// Returns: whether it was ready, and `node` does not wait.
  template <typename Ready>
  bool enter_unless(Ready&& ready, wait_node& node) {
    const std::lock_guard lock(sharing_);
    if (ready()) return true;
    waiters_.push_back(node);
    return false;
  }
  void leave(wait_node& node) noexcept {
    detail::leave(sharing_, node, [] {});
  }

 private:
  /// Called under the lock, which is released.
  void release(bool whole_list) noexcept {
    thread_core* thread = self_core();
    wake_list released_waiters;
    while (wait_node* next = whole_list ? waiters_.choose(thread) : nullptr)
      released_waiters.add(*next);
    sharing_.unlock();
    released_waiters.notify(thread);
  }

  Sharing sharing_;
  wait_list waiters_;
};

}}}  // namespace motet::MOTET_ABI::detail
