// SPDX-License-Identifier: MIT
// The parts of the load generator that know no sockets: what is sent, and how time is counted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <vector>

#include "bench_args.hpp"

namespace bench {

inline std::int64_t clock_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  check(clock_gettime(clock, &time), "clock_gettime");
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline std::int64_t to_ns(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

// Each block of 64 bytes begins with the message's serial number and goes on with bytes that depend
// on their position: what is lost, repeated, swapped or meant for another connection is noticed.
class message {
 public:
  explicit message(std::size_t size) : bytes_(size) {
    for (std::size_t i = 0; i < size; ++i) bytes_[i] = static_cast<char>(i * 2654435761U >> 13);
  }
  const char* stamped(std::uint64_t serial) {
    for (std::size_t at = 0; at < bytes_.size(); at += 64) {
      std::memcpy(&bytes_[at], &serial, std::min(sizeof serial, bytes_.size() - at));
    }
    return bytes_.data();
  }

 private:
  std::vector<char> bytes_;
};

// In fixed memory and log-linear: 64 buckets for each power of two, so that a quantile is at most
// 0.8 % off anywhere between nanoseconds and centuries.
class latency_histogram {
 public:
  void add(std::uint64_t value) {
    const auto shift =
        static_cast<std::size_t>(std::max(0, static_cast<int>(std::bit_width(value)) - 7));
    ++buckets_[shift * 64 + static_cast<std::size_t>(value >> shift)];
    ++count_;
    max_ = std::max(max_, value);
  }

  double quantile_us(double quantile) const {
    const auto rank = static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= rank && seen > 0) return std::min(middle(i), static_cast<double>(max_)) / 1e3;
    }
    return 0;
  }

  std::uint64_t count() const { return count_; }
  double max_us() const { return static_cast<double>(max_) / 1e3; }

 private:
  static double middle(std::size_t bucket) {
    const std::size_t shift = bucket < 128 ? 0 : bucket / 64 - 1;
    return std::ldexp(static_cast<double>(bucket - shift * 64) + 0.5, static_cast<int>(shift));
  }

  std::array<std::uint64_t, 59 * 64> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace bench
