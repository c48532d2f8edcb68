// SPDX-License-Identifier: MIT
// The runnable fibers of a thread, first in, first out but for some among many. Few are linked in
// one direction, through `queued_behind`, so that taking one touches no other. Many do not fit into
// the cache, and a chain cannot be followed ahead of the front without waiting for memory at each
// link: so they are in a ring of pointers, where each fiber knows its place. One that moves to the
// front leaves a gap.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
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
  /// Fibers in a row that may overtake others.
  static constexpr std::size_t most_overtakers = 64;

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
  /// The last fiber of a queue that is in a ring.
  Fiber& back_of_ring() const noexcept { return *at(span() - 1); }

  /// In a ring, reserve() must have made room.
  void push_back(Fiber& fiber) noexcept {
    if (in_ring()) [[unlikely]]
      return push_to_ring(fiber);
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
  /// In a ring, `places` behind the front, of which there must be more than that; null: a gap.
  Fiber* at(std::size_t places) const noexcept { return ring_[(head_ + places) & mask_]; }
  /// The queue must be in a ring, which is never empty.
  Fiber& pop_from_ring() noexcept {
    Fiber& first = *at(0);
    ++head_;
    --size_;
    if ((overtakers_ | gaps_) != 0 || size_ < few) [[unlikely]]
      return behind(first);
    return first;
  }
  /// Whether a fiber of a queue that is in a ring has most of the others before it.
  bool is_far_back(const Fiber& fiber) const noexcept {
    return fiber.queued_at - head_ > span() / 2;
  }
  /// Moves a fiber of a queue that is in a ring to its front.
  /// Returns: false if many others in a row have overtaken those that wait longer.
  bool move_to_front(Fiber& fiber) noexcept {
    if (overtakers_ == most_overtakers) return false;
    ++overtakers_;
    ++overtaking_;
    ++overtakings_;
    ring_[fiber.queued_at & mask_] = nullptr;
    --size_;
    ++gaps_;
    while (at(span() - 1) == nullptr) --gaps_;
    skip_gaps();
    if (span() > mask_) close_gaps();
    put(--head_, fiber);
    ++size_;
    return true;
  }

  /// Makes room for `count` fibers in all, and a quarter as many gaps.
  /// Throws: std::bad_alloc; the queue is as before.
  void reserve(std::size_t count) {
    const std::size_t places = count + count / 4;
    if (count > many && places > capacity_) [[unlikely]]
      grow(std::bit_ceil(places));
  }
  /// Called now and then, because push_back() does not count.
  void arrange() noexcept {
    if (size_ > many && !in_ring()) [[unlikely]]
      move_to_ring();
  }

  /// Returns: how often a fiber has moved to the front so far.
  std::uint64_t overtakings() const noexcept { return overtakings_; }

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
      for (std::size_t i = 0; i < span(); ++i) memory[(head_ + i) & (capacity - 1)] = at(i);
      ring_ = memory.get();
    }
    memory_ = std::move(memory);
    capacity_ = capacity;
    mask_ = capacity - 1;
  }

  /// Returns: the places in use, with the gaps.
  std::size_t span() const noexcept { return size_ + gaps_; }
  void put(std::size_t place, Fiber& fiber) noexcept {
    ring_[place & mask_] = &fiber;
    fiber.queued_at = place;
  }
  [[gnu::noinline]] void push_to_ring(Fiber& fiber) noexcept {
    if (gaps_ != 0 && span() > mask_) close_gaps();
    put(head_ + span(), fiber);
    ++size_;
  }
  /// Restores the order of things after `first` has gone.
  /// Returns: `first`, so that pop_from_ring() need not save it.
  [[gnu::noinline]] Fiber& behind(Fiber& first) noexcept {
    if (overtaking_ > 0) {
      --overtaking_;
    } else {
      overtakers_ = 0;
    }
    if (size_ < few) {
      move_to_links();
    } else {
      skip_gaps();
    }
    return first;
  }
  /// The first and the last entry are never gaps.
  void skip_gaps() noexcept {
    for (; at(0) == nullptr; --gaps_) ++head_;
  }
  /// If reserve() has made room for all fibers, a fifth of a full ring or more is gaps, so this
  /// costs little per push.
  [[gnu::noinline]] void close_gaps() noexcept {
    std::size_t place = head_;
    for (std::size_t i = 0; i < span(); ++i) {
      if (Fiber* const fiber = at(i)) put(place++, *fiber);
    }
    gaps_ = 0;
  }

  [[gnu::noinline]] void move_to_ring() noexcept {
    Fiber* fiber = first_;
    first_ = nullptr;
    ring_ = memory_.get();
    head_ = 0;
    for (std::size_t place = 0; place < size_; ++place) {
      Fiber& next = *std::exchange(fiber, fiber->queued_behind);
      put(place, next);
    }
    gaps_ = overtakers_ = overtaking_ = 0;
  }
  [[gnu::noinline]] void move_to_links() noexcept {
    Fiber** const ring = std::exchange(ring_, nullptr);
    const std::size_t places = span();
    end_ = &first_;
    size_ = 0;
    for (std::size_t i = 0; i < places; ++i) {
      if (Fiber* const fiber = ring[(head_ + i) & mask_]) push_back(*fiber);
    }
  }

  Fiber* first_ = nullptr;  // of a linked queue that is not empty; null in a ring
  Fiber** end_ = &first_;   // the link to which the next one is attached
  std::size_t size_ = 0;
  Fiber** ring_ = nullptr;  // null: the fibers are linked
  std::size_t head_ = 0;
  std::size_t mask_ = 0;
  std::size_t gaps_ = 0;
  std::size_t overtaking_ = 0;  // those at the front that have overtaken others
  std::size_t overtakers_ = 0;  // since one that has not was the first
  std::uint64_t overtakings_ = 0;
  std::size_t capacity_ = 0;  // a power of two, or none
  std::unique_ptr<Fiber*[]> memory_;
};

}}}  // namespace motet::MOTET_ABI::detail
