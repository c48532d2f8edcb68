// SPDX-License-Identifier: MIT
// Delivers each item to every subscription. A push never waits: a subscription that falls too far
// behind misses the oldest items, and its next pop() reports how many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/sync/subscription.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

[[noreturn]] void refuse_zero_capacity();
[[noreturn]] void throw_channel_closed();

/// The last items of a broadcast, which it shares with its subscriptions.
template <typename T, typename Sharing>
struct broadcast_items {
  static constexpr bool shared = Sharing::shared;
  explicit broadcast_items(std::size_t capacity) : ring(capacity) {}

  void read(std::uint64_t& position, reading<T>& result) {
    const std::uint64_t oldest = push_count - std::min<std::uint64_t>(push_count, ring.size());
    if (position < oldest) {
      result.miss_count = oldest - position;
      position = oldest;
    } else if (position < push_count) {
      result.value = ring[position++ % ring.size()];
    }
    result.complete = result.miss_count > 0 || result.value != nullptr || closed;
  }

  wait_queue<Sharing> waiters;
  std::vector<std::shared_ptr<const T>> ring;  // in a ring
  std::uint64_t push_count = 0;
  bool closed = false;
};

template <typename T, typename Sharing>
class basic_broadcast {
  using items = broadcast_items<T, Sharing>;

 public:
  class subscription;

  /// Keeps the last `capacity` items for the subscriptions that have not popped them yet.
  /// Throws: std::invalid_argument for 0; std::bad_alloc.
  explicit basic_broadcast(std::size_t capacity) : items_(make(capacity)) {}
  basic_broadcast(const basic_broadcast&) = delete;
  basic_broadcast& operator=(const basic_broadcast&) = delete;
  /// Closes the broadcast.
  /// Not a switchpoint.
  ~basic_broadcast() {
    items_->waiters.release_at_end([this] { items_->closed = true; });
  }

  /// Returns: a subscription to all items pushed after this call.
  /// Not a switchpoint.
  subscription subscribe() const {
    return subscription(items_, items_->waiters.look([this] { return items_->push_count; }));
  }

  /// Adds an item, in the slot of the oldest one if all slots are in use.
  /// Not a switchpoint.
  /// Throws: channel_closed; std::bad_alloc.
  void push(T item) {
    auto copy = std::make_shared<const T>(std::move(item));
    bool closed = false;
    items_->waiters.release_if([&] {
      closed = items_->closed;
      if (!closed) copy.swap(items_->ring[items_->push_count++ % items_->ring.size()]);
      return !closed;
    });
    if (closed) throw_channel_closed();
  }

  /// Closes the broadcast: subscriptions pop the remaining items, and then std::nullopt. No effect
  /// if it is closed already.
  /// Not a switchpoint.
  void close() {
    items_->waiters.release_if([this] { return items_->closed = true; });
  }

 private:
  static std::shared_ptr<items> make(std::size_t capacity) {
    if (capacity == 0) refuse_zero_capacity();
    return std::make_shared<items>(capacity);
  }

  const std::shared_ptr<items> items_;
};

/// For one fiber or thread at a time. A copy starts at the same position and advances
/// independently. May outlive the broadcast.
template <typename T, typename Sharing>
class basic_broadcast<T, Sharing>::subscription : public subscription_to<T, items> {
 public:
  subscription() = default;

  /// Waits for the next item that this subscription has not popped.
  /// Returns: a copy; std::nullopt if the broadcast is closed and no item is left.
  /// Switchpoint; switches only if it must wait.
  /// Throws: items_missed; a pending interruption; what copying the item throws.
  std::optional<T> pop() { return this->wait_for_next("pop from a broadcast"); }

  /// As pop(), but never waits.
  /// Returns: std::nullopt if pop() would wait, or the broadcast is closed and no item is left.
  /// Not a switchpoint.
  /// Throws: items_missed; what copying the item throws.
  std::optional<T> try_pop() { return this->look_for_next(); }

 private:
  friend class basic_broadcast;
  using subscription_to<T, items>::subscription_to;
};

}  // namespace detail

/// Between fibers and threads.
template <typename T>
using broadcast = detail::basic_broadcast<T, detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
template <typename T>
using broadcast = detail::basic_broadcast<T, detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
