// SPDX-License-Identifier: MIT
// Data that few fibers need, in memory that stays untouched until then. A slab consists of an array
// of control blocks and parallel arrays of cold parts, small bodies, small results and remote
// requests, so that each of these is found from the address of its control block.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/family.hpp>
#include <motet/detail/core/locals.hpp>
#include <motet/detail/core/scope.hpp>
#include <new>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct remote_link;
struct journey;
struct resume_wait;

/// Keeps what is known of a fiber's stays on other threads.
struct journey_owner {
  journey_owner() noexcept = default;
  journey_owner(const journey_owner&) = delete;
  journey_owner& operator=(const journey_owner&) = delete;
  ~journey_owner();

  journey* trip = nullptr;  // null: it has never migrated
};

/// Made by the fiber's home thread, destroyed with the block.
struct cold_part {
  family own_family;                      // its children outside of groups, and its groups
  control_block* reported_to = nullptr;   // parent told of its failure, unless another claims it
  control_block* next_failure = nullptr;  // the next in that parent's `failures`
  control_block* failures = nullptr;      // failed children whose failures are pending
  value_slot token;
  resume_wait* resume = nullptr;  // the current suspend_with()
  std::uint64_t resume_numbers = 0;
  std::string name;
  lasting_interruption cancellation;  // once the fiber has been cancelled
  std::uint64_t thrown_last = 0;      // number of the last `cancelled` thrown, or ended scope
  timer grace;                        // of a handler of `cancellation`
  timer termination_timer;            // of terminate()
  bool escalated = false;
  remote_link* caller = nullptr;       // on another thread: notified of the end
  control_block* callee = nullptr;     // there: the fiber has asked it to end, and awaits that
  bool is_proxy = false;               // the fiber is a proxy, which no listing shows
  control_block* proxy_for = nullptr;  // the fiber that it represents, once made
  bool spared = false;                 // another fiber has claimed the failure of that fiber
  unsigned swallow_count = 0;          // cancellations in a row that the fiber swallowed
  local_list locals;
  journey_owner travels;
  control_block* guest = nullptr;  // the traveller that runs as this fiber, if it hosts one
  bool sends = false;              // it is sending a traveller away
};

struct block_slab {
  static constexpr std::size_t size = std::size_t{1} << 20;  // and its alignment
  // Powers of two: an element of one array is found by shifting.
  static constexpr std::size_t cold_size = std::bit_ceil(sizeof(cold_part));
  static constexpr std::size_t remote_size = 256;
  static constexpr std::size_t first = 1024;  // in bytes: the slab's own fields precede it
  static constexpr std::size_t blocks = (size - first) / (sizeof(control_block) + cold_size +
                                                          small_body + small_result + remote_size);

  static std::byte* base_of(const void* block) noexcept {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(block) & ~(size - 1));
  }
  /// Returns: the address of the `stride` bytes that belong to `block`, in the array that begins
  /// `offset` bytes after the end of the blocks' array.
  [[gnu::returns_nonnull]] static void* beside(const control_block& block, std::size_t offset,
                                               std::size_t stride) noexcept {
    std::byte* base = base_of(&block);
    const auto* address = reinterpret_cast<const std::byte*>(&block);
    const auto index = (static_cast<std::size_t>(address - base) - first) / sizeof(control_block);
    return base + first + sizeof(control_block) * blocks + offset + index * stride;
  }

  static constexpr std::size_t cold_parts = 0;
  static constexpr std::size_t bodies = cold_parts + cold_size * blocks;
  static constexpr std::size_t results = bodies + small_body * blocks;
  static constexpr std::size_t remote = results + small_result * blocks;
};

static_assert(alignof(cold_part) <= alignof(control_block));
static_assert(block_slab::first % alignof(std::max_align_t) == 0 &&
              block_slab::cold_size % alignof(std::max_align_t) == 0);

inline cold_part* cold_if_any(const control_block& block) noexcept {
  if (!block.has_cold_part) return nullptr;
  return static_cast<cold_part*>(
      block_slab::beside(block, block_slab::cold_parts, block_slab::cold_size));
}

/// Returns: the fiber that runs on `block`: its own, or a visiting traveller.
inline control_block& traveller_of(control_block& block) noexcept {
  if (block.hosts) [[unlikely]]
    return *cold_if_any(block)->guest;
  return block;
}

[[gnu::noinline]] inline cold_part& add_cold_part(control_block& block) noexcept {
  void* storage = block_slab::beside(block, block_slab::cold_parts, block_slab::cold_size);
  auto* part = ::new (storage) cold_part;
  part->own_family.owner = &block;
  part->own_family.closed = block.ending;
  block.has_cold_part = true;
  return *part;
}

/// Returns: the block's cold part, which is made if there is none.
inline cold_part& cold(control_block& block) noexcept {
  cold_part* part = cold_if_any(block);
  return part != nullptr ? *part : add_cold_part(block);
}

inline void* small_body_of(const control_block& block) noexcept {
  return block_slab::beside(block, block_slab::bodies, small_body);
}

/// Whether the body is, or was, in the slab; false if the fiber had its stack from the start.
inline bool body_is_beside(const control_block& block) noexcept {
  return block.body == small_body_of(block);
}

inline void* small_result_of(const control_block& block) noexcept {
  return block_slab::beside(block, block_slab::results, small_result);
}

/// The address of a large result, which is stored in the place of a small one.
inline void*& large_result_of(const control_block& block) noexcept {
  return *static_cast<void**>(small_result_of(block));
}

/// Returns: the address at which the fiber's result is, or will be, constructed.
inline void* result_storage(const control_block& block) noexcept {
  return block.kind->result_is_small ? small_result_of(block) : large_result_of(block);
}

}}}  // namespace motet::MOTET_ABI::detail
