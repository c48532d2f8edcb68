// SPDX-License-Identifier: MIT
// A queue between fibers and threads: some push items, others pop them, each in order of arrival.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/detail/base/item_queue.hpp>
#include <motet/detail/sync/wait_list.hpp>
#include <motet/sync/pop_iterator.hpp>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// In place of a capacity: the channel has no limit.
struct unbounded_t {};
inline constexpr unbounded_t unbounded{};

/// A channel's figures, for monitoring.
struct channel_stats {
  std::size_t items = 0;    // in the channel
  std::size_t pushing = 0;  // fibers and threads that wait for room
  std::size_t popping = 0;  // that wait for an item
  bool closed = false;
};

namespace detail {

[[noreturn]] void throw_channel_closed();
[[noreturn]] void refuse_capacity();

template <typename T, typename Sharing>
class basic_channel {
  static_assert(std::is_object_v<T> && std::is_nothrow_move_constructible_v<T>,
                "what goes through a channel is moved, and moving it must not throw");

 public:
  using value_type = T;
  using iterator = pop_iterator<basic_channel>;

  /// With a capacity of 0 a push waits until its item is popped. Otherwise the channel buffers up
  /// to `capacity` items. It allocates memory as items arrive, and keeps it; see reserve(). Items
  /// are moved in and out under the channel's lock.
  /// Throws: std::invalid_argument for more items than memory can hold.
  explicit basic_channel(std::size_t capacity = 0) : capacity_(capacity) {
    if (capacity > most_items) refuse_capacity();
    items_.retain_for(capacity);
  }
  /// As many items as memory holds; a push never waits.
  explicit basic_channel(unbounded_t) : capacity_(unlimited) {}
  basic_channel(const basic_channel&) = delete;
  basic_channel& operator=(const basic_channel&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_channel() {
    givers_.detach_all(sharing_);
    takers_.detach_all(sharing_);
  }

  /// Hands `item` to the pop() that has waited longest, or leaves it in the channel, waiting for
  /// room. If push() throws, the caller keeps `item`.
  /// Switchpoint; switches only if it must wait.
  /// Throws: channel_closed; a pending interruption; std::bad_alloc; std::logic_error if
  ///         the channel is destroyed meanwhile.
  [[gnu::always_inline]] void push(T&& item) {
    thread_core* thread = Sharing::enter();
    sharing_.lock();
    do {
      const answer result = give(item, thread);
      if (result == answer::done) [[likely]]
        return;
      if (result == answer::closed) throw_channel_closed();
    } while (sharing_.becomes_fiber(thread));
    single_wait node("push to a channel", this, thread, Sharing::shared);
    node.slot = std::addressof(item);
    givers_.push_back(node);
    sharing_.unlock();
    wait_on(sharing_, node);
    if (node.refused) throw_channel_closed();
  }
  /// The same for an item that is copied.
  /// Switchpoint; switches only if it must wait.
  [[gnu::always_inline]] void push(const T& item) {
    T copy(item);
    push(std::move(copy));
  }

  /// As push(), but never waits.
  /// Returns: false if push() would wait; the caller keeps `item`.
  /// Not a switchpoint.
  /// Throws: channel_closed; std::bad_alloc.
  bool try_push(T&& item) {
    thread_core* thread = self_core();
    sharing_.lock();
    const answer result = give(item, thread);
    if (result == answer::closed) throw_channel_closed();
    if (result == answer::wait) sharing_.unlock();
    return result == answer::done;
  }
  /// The same for an item that is copied.
  /// Not a switchpoint.
  bool try_push(const T& item) {
    T copy(item);
    return try_push(std::move(copy));
  }

  /// Waits for an item, and takes the oldest one.
  /// Returns: nothing if the channel is closed and empty.
  /// Switchpoint; switches only if it must wait.
  /// Throws: a pending interruption; std::logic_error if the channel is destroyed
  ///         meanwhile.
  [[gnu::always_inline]] std::optional<T> pop() {
    thread_core* thread = Sharing::enter();
    std::optional<T> item;
    sharing_.lock();
    do {
      if (take(item, thread) != answer::wait) [[likely]]
        return item;
    } while (sharing_.becomes_fiber(thread));
    single_wait node("pop from a channel", this, thread, Sharing::shared);
    node.slot = std::addressof(item);
    takers_.push_back(node);
    sharing_.unlock();
    wait_on(sharing_, node);
    return item;
  }

  /// As pop(), but never waits.
  /// Returns: std::nullopt if pop() would wait, or if the channel is closed and empty.
  /// Not a switchpoint.
  std::optional<T> try_pop() {
    std::optional<T> item;
    sharing_.lock();
    if (take(item, self_core()) == answer::wait) sharing_.unlock();
    return item;
  }

  /// Closes the channel: every push() that waits, or comes later, throws channel_closed. The items
  /// in the channel can still be popped, and then every pop() returns nothing. Closing the channel
  /// again changes nothing.
  /// Not a switchpoint.
  void close() {
    thread_core* thread = self_core();
    wake_list waiters;
    sharing_.lock();
    closed_ = true;
    for (wait_list* list : {&givers_, &takers_}) {
      while (wait_node* next = list->choose(thread)) {
        next->refused = true;
        waiters.add(*next);
      }
    }
    sharing_.unlock();
    waiters.notify(thread);
  }

  /// Drops the items in the channel. The items of push() calls waiting for room then move in.
  /// Returns: how many items were dropped.
  /// Not a switchpoint, unless T's destructor is.
  std::size_t clear() {
    std::size_t count = 0;
    for (std::size_t remaining = size(); remaining > 0 && try_pop(); --remaining) ++count;
    return count;
  }

  /// Allocates room for `count` more items than are in the channel, up to its capacity, and keeps
  /// it, so that this many pushes do not allocate.
  /// Not a switchpoint.
  /// Throws: std::bad_alloc; std::invalid_argument for more items than memory can hold.
  void reserve(std::size_t count) {
    if (capacity_ == 0) return;
    if (count > most_items) refuse_capacity();
    for (;;) {
      auto room = items_.make_chunk();  // allocated, and the rest freed, without the lock
      const std::lock_guard lock(sharing_);
      const std::size_t chunks = std::min(count, capacity_ - items_.size());
      if (items_.retains_capacity_for(chunks + spare_chunks() * items_.chunk_size)) return;
      items_.add(std::move(room));
    }
  }

  /// Returns: the number of items in the channel, without those of waiting pushes.
  /// Not a switchpoint.
  std::size_t size() {
    const std::lock_guard lock(sharing_);
    return items_.size();
  }
  /// Returns: the channel's state; takes time linear in the number of waiters. Not a switchpoint.
  channel_stats stats() {
    const std::lock_guard lock(sharing_);
    return {items_.size(), givers_.size(), takers_.size(), closed_};
  }

  /// Pops until the channel is closed and empty.
  /// Switchpoint; so is advancing the iterator.
  iterator begin() { return iterator(*this); }
  /// Not a switchpoint.
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  template <typename, typename>
  friend struct pop_case;
  template <typename, typename>
  friend struct push_case;

  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t most_items = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T);

  enum class answer { done, closed, wait };

  /// A pop from a full channel moves in the item of a waiting push(), and that must not fail.
  std::size_t spare_chunks() const noexcept { return capacity_ == unlimited ? 0 : 1; }

  /// Called under the lock, which is released unless the answer is to wait.
  [[gnu::always_inline]] answer give(T& item, thread_core* thread) {
    wait_node* taker = takers_.choose(thread);
    if (taker == nullptr) return keep(item, thread);
    sharing_.unlock();
    static_cast<std::optional<T>*>(taker->slot)->emplace(std::move(item));
    taker->owner->notify(thread);
    return answer::done;
  }

  [[gnu::noinline]] answer keep(T& item, thread_core* thread) {
    if (closed_) {
      sharing_.unlock();
      return answer::closed;
    }
    if (items_.size() >= capacity_) return answer::wait;
    if (items_.needs_chunk(spare_chunks())) [[unlikely]] {
      make_room();
      return give(item, thread);  // a pop() may have come meanwhile
    }
    items_.push(std::move(item));
    sharing_.unlock();
    return answer::done;
  }

  /// Nothing is allocated under the lock.
  [[gnu::noinline]] void make_room() {
    sharing_.unlock();
    auto room = items_.make_chunk();
    sharing_.lock();
    items_.add(std::move(room));
  }

  /// Called under the lock, which is released unless the answer is to wait.
  [[gnu::always_inline]] answer take(std::optional<T>& item, thread_core* thread) {
    if (items_.size() > 0) return take_kept(item, thread);
    wait_node* giver = givers_.choose(thread);
    if (giver == nullptr && !closed_) return answer::wait;
    sharing_.unlock();
    if (giver == nullptr) return answer::closed;
    item.emplace(std::move(*static_cast<T*>(giver->slot)));
    giver->owner->notify(thread);
    return answer::done;
  }

  [[gnu::noinline]] answer take_kept(std::optional<T>& item, thread_core* thread) {
    typename item_queue<T>::chunk_pointer chunk = items_.pop(item);  // freed without the lock
    wait_node* giver = givers_.choose(thread);
    if (giver != nullptr) items_.push(std::move(*static_cast<T*>(giver->slot)));
    sharing_.unlock();
    if (giver != nullptr) giver->owner->notify(thread);
    return answer::done;
  }

  Sharing sharing_;
  bool closed_ = false;
  const std::size_t capacity_;
  item_queue<T> items_;
  wait_list givers_, takers_;  // at least one of the two is empty
};

}  // namespace detail

/// Between fibers and threads.
template <typename T>
using channel = detail::basic_channel<T, detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
template <typename T>
using channel = detail::basic_channel<T, detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
