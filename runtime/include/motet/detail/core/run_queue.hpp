// SPDX-License-Identifier: MIT
// The runnable fibers of a thread, first in, first out. Few are linked in one direction, through
// `queued_behind`, so that taking one touches no other. Many do not fit into the cache, and a chain
// cannot be followed ahead of the front without waiting for memory at each link: so they are in a
// ring of pointers.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <typename Fiber>
class run_queue {
 public:
  /// arrange() moves more than `many` to the ring; when fewer than `few` remain, they are linked.
  static constexpr std::size_t many = 4'096;
  static constexpr std::size_t few = 1'024;

  run_queue() = default;
  run_queue(const run_queue&) = delete;
  run_queue& operator=(const run_queue&) = delete;

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  Fiber* front() const noexcept {
    if (size_ == 0) return nullptr;
    return in_ring() ? at(0) : first_;
  }
  /// The same for a queue that is not empty; null if it is in a ring.
  Fiber* front_linked() const noexcept { return first_; }

  /// In a ring, reserve() must have made room.
  void push_back(Fiber& fiber) noexcept {
    if (in_ring()) [[unlikely]] {
      ring_[(head_ + size_++) & mask_] = &fiber;
      return;
    }
    *end_ = &fiber;
    end_ = &fiber.queued_behind;
    ++size_;
  }
  /// The queue must not be empty.
  Fiber& pop_front() noexcept { return in_ring() ? pop_from_ring() : pop_linked(); }
  /// The same for a queue that is not in a ring.
  Fiber& pop_linked() noexcept {
    Fiber& first = *first_;
    first_ = first.queued_behind;
    if (--size_ == 0) end_ = &first_;
    return first;
  }

  bool in_ring() const noexcept { return ring_ != nullptr; }
  /// In a ring, `places` behind the front, of which there must be more than that.
  Fiber* at(std::size_t places) const noexcept { return ring_[(head_ + places) & mask_]; }
  /// The queue must be in a ring, which is never empty.
  Fiber& pop_from_ring() noexcept {
    Fiber& first = *at(0);
    ++head_;
    if (--size_ < few) [[unlikely]]
      move_to_links();
    return first;
  }

  /// Makes room for `count` fibers in all.
  /// Throws: std::bad_alloc; the queue is as before.
  void reserve(std::size_t count) {
    if (count > many && count > capacity_) [[unlikely]]
      grow(std::bit_ceil(count));
  }
  /// Called now and then, because push_back() does not count.
  void arrange() noexcept {
    if (size_ > many && !in_ring()) [[unlikely]]
      move_to_ring();
  }

  void remove(Fiber& fiber) noexcept {
    for (std::size_t remaining = size_; remaining > 0; --remaining) {
      Fiber& next = pop_front();
      if (&next != &fiber) push_back(next);
    }
  }
  /// In a forked child: empties the queue without touching the fibers.
  void abandon() noexcept {
    ring_ = nullptr;
    end_ = &first_;
    size_ = 0;
  }

 private:
  [[gnu::noinline]] void grow(std::size_t capacity) {
    auto memory = std::make_unique_for_overwrite<Fiber*[]>(capacity);
    if (in_ring()) {
      for (std::size_t i = 0; i < size_; ++i) memory[i] = at(i);
      ring_ = memory.get();
      head_ = 0;
    }
    memory_ = std::move(memory);
    capacity_ = capacity;
    mask_ = capacity - 1;
  }

  [[gnu::noinline]] void move_to_ring() noexcept {
    Fiber* fiber = first_;
    for (std::size_t i = 0; i < size_; ++i) {
      memory_[i] = fiber;
      fiber = fiber->queued_behind;
    }
    first_ = nullptr;
    ring_ = memory_.get();
    head_ = 0;
  }
  [[gnu::noinline]] void move_to_links() noexcept {
    const std::size_t count = std::exchange(size_, 0);
    Fiber** const ring = std::exchange(ring_, nullptr);
    end_ = &first_;
    for (std::size_t i = 0; i < count; ++i) push_back(*ring[(head_ + i) & mask_]);
  }

  Fiber* first_ = nullptr;  // of a linked queue that is not empty; null in a ring
  Fiber** end_ = &first_;   // the link to which the next one is attached
  std::size_t size_ = 0;
  Fiber** ring_ = nullptr;  // null: the fibers are linked
  std::size_t head_ = 0;
  std::size_t mask_ = 0;
  std::size_t capacity_ = 0;  // a power of two, or none
  std::unique_ptr<Fiber*[]> memory_;
};

}}}  // namespace motet::MOTET_ABI::detail
