// SPDX-License-Identifier: MIT
// Reads a trace file record by record. The file may be of a process that was killed, or that still
// writes, or not be a trace at all: invalid data is an error, never a wild read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/recording/trace_format.hpp"

namespace motet_trace {

namespace format = motet::detail::trace;

struct record {
  std::int64_t time;  // in nanoseconds since the recording began
  format::kind type;
  std::uint64_t second;

  std::uint64_t number() const noexcept { return second & format::number_mask; }
  std::uint32_t detail() const noexcept {
    return static_cast<std::uint32_t>(second >> format::number_bits);
  }
};

/// The records of one thread, the oldest first.
struct ring {
  std::uint64_t thread = 0;
  std::uint64_t fibers = 0;          // the upper bits of their ids
  bool complete = true;              // no record is lost
  std::vector<std::uint64_t> words;  // two for each record
  double ns_in_tick = 0;

  std::size_t size() const noexcept { return words.size() / 2; }
  record at(std::size_t i) const noexcept {
    constexpr double latest = 4e18;  // a broken record may say anything
    const std::uint64_t first = words[2 * i];
    const double time = std::min(static_cast<double>(first >> 8) * ns_in_tick, latest);
    return {static_cast<std::int64_t>(time), static_cast<format::kind>(first & 0xff),
            words[2 * i + 1]};
  }
};

class trace_reader {
 public:
  /// Throws: std::runtime_error, whose text is for the user.
  explicit trace_reader(const std::string& path);

  std::uint64_t process() const noexcept { return process_; }
  std::uint64_t began_at() const noexcept { return began_at_; }
  const std::vector<ring>& rings() const noexcept { return rings_; }
  std::size_t records() const noexcept;
  /// Returns: the text at that offset; empty if there is none.
  std::string_view text(std::uint32_t offset) const noexcept;

 private:
  std::uint64_t process_ = 0;
  std::uint64_t began_at_ = 0;
  std::string texts_;
  std::vector<ring> rings_;
};

}  // namespace motet_trace
