// SPDX-License-Identifier: MIT
// Calling something again when it fails, at growing intervals.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// How failed calls are retried. The delays work like those of supervise().
struct retry_schedule {
  /// The total number of attempts, at least 1.
  std::size_t attempts = 5;
  /// The delay before the second attempt. It is doubled each time, up to `longest_delay`.
  clock::duration delay = std::chrono::milliseconds(100);
  clock::duration longest_delay = std::chrono::seconds(30);
  /// Up to this part of each delay, in [0, 1], is omitted at random, so that calls that failed
  /// together are not retried together.
  double jitter = 0.5;
  /// Called with each failure, in the calling fiber; returns whether to retry, and may call
  /// switchpoints. If empty, every failure is retried except a std::logic_error, which would only
  /// recur.
  std::function<bool(const std::exception_ptr& failure)> only_if = {};
};

namespace detail {

/// Throws: std::invalid_argument; a pending interruption.
void enter_retry(const retry_schedule& schedule);
/// Called in a handler, after attempt number `attempts`, from 1, has failed. Waits for the delay.
/// Throws: the failure, if there is no further attempt.
void await_next_attempt(const retry_schedule& schedule, std::size_t attempts);

}  // namespace detail

/// Calls `f` until it returns. `cancelled` is not a failure and ends this immediately, but an
/// exception raised in this fiber by another one counts as a failure of `f`. To limit the time of
/// each attempt, put the time limit into `f`; to limit the total, put it around this call.
/// Returns: the result of `f`.
/// Switchpoint.
/// Throws: the last failure, unchanged, when all attempts have failed, or `only_if` returned false;
///         a pending interruption; std::invalid_argument for a schedule without attempts, with a
///         negative delay, or with a jitter outside [0, 1].
template <typename F>
decltype(auto) retry(const retry_schedule& schedule, F&& f) {
  detail::enter_retry(schedule);
  for (std::size_t attempts = 1;; ++attempts) {
    try {
      return f();
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      detail::await_next_attempt(schedule, attempts);
    }
  }
}

}}  // namespace motet::MOTET_ABI
