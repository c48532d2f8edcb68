// SPDX-License-Identifier: MIT
// The file that the flight recorder writes and motet-trace reads: a header, a table of texts, and a
// ring of records per thread. It is written through a mapping, so it survives the death of the
// process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>

#include "core/trace_events.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace trace {

/// The maximum lateness of a timer that a record can hold, in microseconds.
inline constexpr std::uint32_t latest = (1U << 20) - 1;
constexpr std::uint32_t wake_detail(cause waker, std::uint32_t late_us) noexcept {
  return late_us << 4 | static_cast<std::uint32_t>(waker);
}

/// A fiber's id: its number within its thread is in the lower bits.
inline constexpr unsigned number_bits = 40;
inline constexpr std::uint64_t number_mask = (std::uint64_t{1} << number_bits) - 1;

struct record {
  std::atomic<std::uint64_t> first;  // ticks since the head's `began_at`, and the kind in 8 bits
  std::atomic<std::uint64_t> second;
};
static_assert(sizeof(record) == 16);

struct alignas(4096) ring_head {
  std::atomic<std::uint64_t> record_count;  // total so far; the last ones are in the ring
  std::atomic<std::uint64_t> first_whole;   // earlier ones may be overwritten
  std::atomic<std::uint64_t> thread;        // the kernel's number
  std::atomic<std::uint64_t> fibers;        // the upper bits of their ids
};

inline constexpr std::array<char, 8> magic = {'m', 'o', 't', 'e', 't', 't', 'r', '1'};

struct alignas(4096) head {
  std::array<char, 8> sign;
  std::uint64_t process;
  std::uint64_t began_at;     // in nanoseconds since 1970
  std::uint64_t began_ticks;  // then
  std::atomic<std::uint64_t> ticks_in_second;
  std::uint64_t records;  // that a ring has room for, a power of two
  std::uint64_t texts_at, texts_size;
  std::uint64_t rings_at, ring_size;  // a ring's head, and its records
  std::atomic<std::uint64_t> texts_used, rings_used;
};

/// A text in the table: its length in two bytes, then its bytes. It starts at an even offset;
/// offset 0 stands for an unknown text.
inline constexpr std::size_t longest_text = 250;
inline constexpr std::size_t texts_size = std::size_t{1} << 20;

}}}}  // namespace motet::MOTET_ABI::detail::trace
