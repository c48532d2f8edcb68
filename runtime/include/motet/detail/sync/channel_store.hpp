// SPDX-License-Identifier: MIT
// The items in a channel, in order of arrival, and how many fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <motet/detail/base/item_queue.hpp>
#include <optional>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

[[noreturn]] void refuse_capacity();

/// What a channel asks of its store. The capacity is constant. Every call but capacity() and
/// allocate() is under the channel's lock, where nothing is allocated or freed: add() brings
/// memory, and add() and pop() return what their caller frees without the lock.
template <typename T>
class fifo_store {
 public:
  using memory = typename item_queue<T>::chunk_pointer;
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  /// Throws: std::invalid_argument for more items than memory can hold.
  explicit fifo_store(std::size_t capacity) : capacity_(capacity) {
    if (capacity == unlimited) return;
    check(capacity);
    items_.retain_for(capacity);
  }

  std::size_t size() const noexcept { return items_.size(); }
  std::size_t capacity() const noexcept { return capacity_; }
  bool full() const noexcept { return items_.size() >= capacity_; }

  /// The store must not be full, nor lack memory.
  void push(T&& item) noexcept { items_.push(std::move(item)); }
  /// The store must not be empty.
  memory pop(std::optional<T>& item) noexcept { return items_.pop(item); }

  /// Returns: for how many items a push() lacks memory; 0 for none. A pop from a full channel moves
  ///          in the item of a waiting push() without asking, so room for one item more is kept.
  std::size_t shortage() const noexcept { return items_.needs_chunk(spare_chunks()) ? 1 : 0; }
  /// Keeps memory for `count` items more, as far as they fit, once it has that.
  /// Returns: for how many of them it lacks memory.
  /// Throws: std::invalid_argument as the constructor.
  std::size_t retain_for(std::size_t count) {
    check(count);
    const std::size_t remaining = std::min(count, capacity_ - items_.size());
    return items_.retain_spares_for(remaining + spare_chunks() * items_.chunk_size);
  }

  /// Returns: memory for some of `count` items, for add(); more is asked for while there is a
  ///          shortage.
  /// Throws: std::bad_alloc.
  static memory allocate(std::size_t /*count*/) { return item_queue<T>::make_chunk(); }
  memory add(memory chunk) noexcept {
    items_.add(std::move(chunk));
    return nullptr;
  }

 private:
  static void check(std::size_t count) {
    constexpr std::size_t most_items = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T);
    if (count > most_items) refuse_capacity();
  }
  std::size_t spare_chunks() const noexcept { return capacity_ == unlimited ? 0 : 1; }

  const std::size_t capacity_;
  item_queue<T> items_;
};

}}}  // namespace motet::MOTET_ABI::detail
