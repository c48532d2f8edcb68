// SPDX-License-Identifier: MIT
// What the helpers of a parallel_for() and its caller share. A helper claims a block of elements by
// one atomic addition, until there are none. The caller waits until no helper is in a block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/threads/pool_job.hpp>
#include <motet/sync/event.hpp>
#include <stop_token>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class shared_loop {
 public:
  /// So that the sum of all claims does not overflow, although each helper claims once in vain.
  static constexpr std::size_t most_elements = std::numeric_limits<std::size_t>::max() / 2;

  shared_loop(std::size_t count, std::size_t helpers) noexcept
      : count_(count), helpers_(helpers), unended_(helpers) {}

  /// A helper is about to claim a block.
  void begin_block() noexcept { busy_.fetch_add(1); }

  struct block {
    std::size_t first, last;
    bool empty() const noexcept { return first == last; }
  };
  /// Returns: an empty block if none is left, or a call has forked and this is the child.
  block claim(std::size_t size) noexcept {
    if (process_ != this_process()) return {0, 0};
    const std::size_t first = std::min(next_.fetch_add(size), count_);
    return {first, std::min(first + size, count_)};
  }

  /// The caller may return once no helper is in a block and none is left.
  void end_block() noexcept {
    if (busy_.fetch_sub(1) != 1) return;
    race_point();
    // Another helper may have begun, and claimed the last block, since.
    if (is_exhausted() && busy_.load() == 0) over_.set();
  }

  /// A helper ends after begin_block().
  void end_help() noexcept {
    end_block();
    withdraw();
  }

  /// A helper has ended, or has been dropped before it began.
  void withdraw() noexcept {
    if (unended_.fetch_sub(1) != 1) return;
    if (!is_exhausted()) fail(undone_error());
    over_.set();
  }

  /// The first failure counts. No further block is claimed, and what waits in one is interrupted.
  void fail(std::exception_ptr error) noexcept {
    if (!failed_.exchange(true)) error_ = std::move(error);
    stop();
  }

  /// Throws: the first failure; a pending interruption.
  void await_end() {
    over_.wait();
    if (const std::exception_ptr error = std::exchange(error_, nullptr))
      std::rethrow_exception(error);
  }

  /// Ends the loop early. Nothing interrupts this: the blocks use the caller's frame.
  void abandon() noexcept {
    stop();
    const internal_shield safe;
    if (busy_.load() > 0) over_.wait();
  }

  bool is_exhausted() const noexcept { return next_.load() >= count_; }
  /// Returns: the elements that an even share of the rest has, at least one.
  std::size_t largest_block() const noexcept {
    const std::size_t rest = count_ - std::min(next_.load(std::memory_order_relaxed), count_);
    return std::max<std::size_t>(1, rest / (2 * helpers_));
  }
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

 private:
  void stop() noexcept {
    next_.store(count_);
    stop_.request_stop();
  }

  const std::uint32_t process_ = this_process();
  const std::size_t count_;
  const std::size_t helpers_;
  std::stop_source stop_;
  event over_;
  std::exception_ptr error_;
  atomic<bool> failed_{false};
  atomic<std::size_t> busy_{0};  // helpers that are in a block, or about to claim one
  atomic<std::size_t> unended_;
  alignas(64) atomic<std::size_t> next_{0};
};

}}}  // namespace motet::MOTET_ABI::detail
