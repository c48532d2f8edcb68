// SPDX-License-Identifier: MIT
// A queue between fibers and threads: some push items, others pop them, each in order of arrival.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/detail/sync/channel_queue.hpp>
#include <motet/detail/sync/channel_store.hpp>
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

template <typename T, typename Sharing, typename Store = fifo_store<T>>
class basic_channel : channel_queue<T, Sharing, Store> {
  static_assert(std::is_object_v<T> && std::is_nothrow_move_constructible_v<T>,
                "what goes through a channel is moved, and moving it must not throw");

 public:
  using value_type = T;
  using iterator = pop_iterator<basic_channel>;

  /// With a capacity of 0 a push waits until its item is popped. Otherwise the channel buffers up
  /// to `capacity` items. It allocates memory as items arrive, and keeps it; see reserve(). Items
  /// are moved in and out under the channel's lock.
  /// Throws: std::invalid_argument for more items than memory can hold.
  explicit basic_channel(std::size_t capacity = 0) : base(checked(capacity)) {}
  /// As many items as memory holds; a push never waits.
  explicit basic_channel(unbounded_t) : base(Store::unlimited) {}
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_channel() = default;

  /// Hands `item` to the pop() that has waited longest, or leaves it in the channel, waiting for
  /// room. If push() throws, the caller keeps `item`.
  /// Switchpoint; switches only if it must wait.
  /// Throws: channel_closed; a pending interruption; std::bad_alloc; std::logic_error if
  ///         the channel is destroyed meanwhile.
  [[gnu::always_inline]] void push(T&& item) {
    thread_core* thread = Sharing::enter();
    sharing_.lock();
    do {
      const auto result = this->send(item, thread);
      if (result == answer::done) [[likely]]
        return;
      if (result == answer::closed) throw_channel_closed();
    } while (sharing_.becomes_fiber(thread));
    single_wait node("push to a channel", this, thread, Sharing::shared);
    node.slot = std::addressof(item);
    senders_.push_back(node);
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
  bool try_push(T&& item) { return this->try_send(item, self_core()); }
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
      if (this->receive(item, thread) != answer::wait) [[likely]]
        return item;
    } while (sharing_.becomes_fiber(thread));
    single_wait node("pop from a channel", this, thread, Sharing::shared);
    node.slot = std::addressof(item);
    receivers_.push_back(node);
    sharing_.unlock();
    wait_on(sharing_, node);
    return item;
  }

  /// As pop(), but never waits.
  /// Returns: std::nullopt if pop() would wait, or if the channel is closed and empty.
  /// Not a switchpoint.
  std::optional<T> try_pop() {
    std::optional<T> item;
    this->try_receive(item, self_core());
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
    for (wait_list* list : {&senders_, &receivers_}) {
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
    if (store_.capacity() == 0) return;
    const auto shortage = [&] {
      const std::lock_guard lock(sharing_);
      return store_.retain_for(count);
    };
    while (const std::size_t missing = shortage()) this->add_memory(missing);
  }

  /// Returns: the number of items in the channel, without those of waiting pushes.
  /// Not a switchpoint.
  std::size_t size() {
    const std::lock_guard lock(sharing_);
    return store_.size();
  }
  /// Returns: the channel's state; takes time linear in the number of waiters. Not a switchpoint.
  channel_stats stats() {
    const std::lock_guard lock(sharing_);
    return {store_.size(), senders_.size(), receivers_.size(), closed_};
  }

  /// Pops until the channel is closed and empty.
  /// Switchpoint; so is advancing the iterator.
  iterator begin() { return iterator(*this); }
  /// Not a switchpoint.
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  using base = channel_queue<T, Sharing, Store>;
  using base::closed_;
  using base::receivers_;
  using base::senders_;
  using base::sharing_;
  using base::store_;
  using typename base::answer;

  /// The part that a select() waits on.
  friend base& queue_of(basic_channel& channel) noexcept { return channel; }

  /// Throws: std::invalid_argument for the number that stands for no limit.
  static std::size_t checked(std::size_t capacity) {
    if (capacity == Store::unlimited) refuse_capacity();
    return capacity;
  }
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
