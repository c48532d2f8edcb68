// SPDX-License-Identifier: MIT
// How late a thread is: how long a fiber that becomes runnable waits for its turn.
#pragma once

#include <chrono>
#include <motet/clock.hpp>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Measured once in a millisecond by a fiber that is about to do some work, and stands behind all
/// others first. Whether a thread is overloaded is decided as CoDel does: a queue that is short
/// again now and then only takes up a burst; one that has not been for a while does not go away by
/// itself. Source: RFC 8289.
class lateness {
 public:
  /// Returns: the calling thread's.
  static lateness& here() noexcept;

  /// Returns: whether work is to be refused: for 100 ms the queue has not been as short as `most`,
  ///          and it is longer now.
  /// Switchpoint.
  /// Throws: what is pending for the fiber.
  bool is_over(clock::duration most);

 private:
  void measure();
  void note(clock::time_point now, clock::duration delay) noexcept;

  clock::time_point measured_at_{};
  clock::duration last_{};
  bool measures_ = false;  // since measured_at_
  clock::time_point interval_ends_{};
  clock::duration least_{};         // in this interval
  clock::duration least_before_{};  // in the one before
};

}}}  // namespace motet::MOTET_ABI::http
