// SPDX-License-Identifier: MIT
// A queue of items in chunks: so a push moves no other item, and memory can be allocated and freed
// outside the lock that guards the queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <new>
#include <optional>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <typename T>
class item_queue {
 public:
  static constexpr std::size_t chunk_size = std::clamp<std::size_t>(4096 / sizeof(T), 1, 64);

  /// Items that fill cache lines have lines of their own.
  static constexpr std::size_t slot_alignment = sizeof(T) % 64 == 0 ? 64 : alignof(T);

  struct chunk {
    std::unique_ptr<chunk> next;
    alignas(slot_alignment) std::byte slots[chunk_size][sizeof(T)];
    T* at(std::size_t index) noexcept { return std::launder(reinterpret_cast<T*>(slots[index])); }
  };
  using chunk_pointer = std::unique_ptr<chunk>;

  item_queue() = default;
  item_queue(const item_queue&) = delete;
  item_queue& operator=(const item_queue&) = delete;
  ~item_queue() {
    std::optional<T> item;
    while (size_ > 0) pop(item);
    while (first_ != nullptr) first_ = std::move(first_->next);
    while (spare_ != nullptr) spare_ = std::move(spare_->next);
  }

  std::size_t size() const noexcept { return size_; }

  /// Returns: an empty chunk for add().
  /// Throws: std::bad_alloc.
  static chunk_pointer make_chunk() { return chunk_pointer(new chunk); }

  /// Keeps the memory that `count` items have needed.
  void retain_for(std::size_t count) noexcept { retained_ = count / chunk_size + 2; }

  /// Has pop() keep the spare chunks that `count` items more may need, once there are so many.
  /// Returns: for how many of these items chunks must be added first.
  std::size_t retain_spares_for(std::size_t count) noexcept {
    const std::size_t chunks = count / chunk_size + 1;
    if (spares_ < chunks) return (chunks - spares_) * chunk_size;
    retained_ = std::max(retained_, chunks);
    return 0;
  }

  /// pop() keeps up to `chunks` empty chunks for later, and returns the others to be freed.
  void retain(std::size_t chunks) noexcept { retained_ = chunks; }

  /// Swaps the items, and the memory of both queues.
  void swap(item_queue& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(spare_, other.spare_);
    std::swap(last_, other.last_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    std::swap(size_, other.size_);
    std::swap(spares_, other.spares_);
    std::swap(retained_, other.retained_);
  }

  /// The oldest item; the queue must not be empty.
  T& front() noexcept { return *first_->at(begin_); }

  /// Returns: whether push() must be preceded by add(), so that `reserve` spare chunks are left.
  bool needs_chunk(std::size_t reserve = 0) const noexcept {
    return spares_ < reserve + (end_ == chunk_size || first_ == nullptr ? 1 : 0);
  }

  void add(chunk_pointer chunks) noexcept {
    chunks->next = std::move(spare_);
    spare_ = std::move(chunks);
    ++spares_;
  }

  void push(T&& item) noexcept {
    if (first_ == nullptr || end_ == chunk_size) extend();
    ::new (last_->slots[end_]) T(std::move(item));
    ++end_;
    ++size_;
  }

  /// Fetches the place of a later item from the cache of the thread that has emptied it.
  void prefetch_place() noexcept {
    constexpr std::size_t places_ahead = 4;
    if (last_ != nullptr && end_ + places_ahead < chunk_size)
      __builtin_prefetch(last_->slots[end_ + places_ahead], 1);
  }

  /// Moves the oldest item into `item`.
  /// Returns: a chunk that is no longer needed, or null.
  chunk_pointer pop(std::optional<T>& item) noexcept {
    T* oldest = first_->at(begin_);
    item.emplace(std::move(*oldest));
    return drop(oldest);
  }

 private:
  void extend() noexcept {
    chunk_pointer fresh = std::move(spare_);
    spare_ = std::move(fresh->next);
    --spares_;
    chunk* tail = fresh.get();
    (first_ == nullptr ? first_ : last_->next) = std::move(fresh);
    last_ = tail;
    end_ = 0;
  }

  chunk_pointer drop(T* oldest) noexcept {
    oldest->~T();
    ++begin_;
    --size_;
    const bool last_of_all = size_ == 0 && first_.get() == last_;
    if (last_of_all) begin_ = end_ = 0;
    if (begin_ < chunk_size || last_of_all) return nullptr;
    begin_ = 0;
    chunk_pointer head = std::exchange(first_, std::move(first_->next));
    if (spares_ >= retained_) return head;
    add(std::move(head));
    return nullptr;
  }

  chunk_pointer first_, spare_;
  chunk* last_ = nullptr;
  std::size_t begin_ = 0;  // in the first chunk
  std::size_t end_ = 0;    // in the last chunk
  std::size_t size_ = 0;
  std::size_t spares_ = 0;
  std::size_t retained_ = 1;
};

}}}  // namespace motet::MOTET_ABI::detail
