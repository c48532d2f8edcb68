// SPDX-License-Identifier: MIT
// Which requests a thread refuses when it is overloaded.
#pragma once

#include <atomic>
#include <chrono>
#include <motet/base/clock.hpp>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// One per thread. It limits the time that a request waits for its handler. The limit is long while
/// the queue has recently been short, to absorb a burst; and short if the queue has not been short
/// for a while, because then it will not drain by itself. A request that has already waited longer
/// when the thread reads it is refused immediately; all arrived requests are checked before a
/// handler runs. The others queue, and are refused at their start if they have waited too long by
/// then. The last one is always admitted, so the thread never idles. Source: RFC 8289 (CoDel); B.
/// Maurer, "Fail at Scale", ACM Queue 13, 8 (2015).
class admission {
 public:
  /// Returns: the calling thread's, with `limit` as the limit of an overloaded thread.
  static admission& here(clock::duration limit) noexcept;

  /// Counts a request whose handler is to run, or runs.
  class in_service {
   public:
    explicit in_service(admission& door) noexcept : door_(door) { ++door_.requests_; }
    in_service(const in_service&) = delete;
    in_service& operator=(const in_service&) = delete;
    ~in_service() { --door_.requests_; }

    /// Has the thread decide on the requests that have come meanwhile.
    /// Switchpoint.
    /// Throws: a pending interruption.
    void let_others_be_decided();

   private:
    admission& door_;
  };

  // `delay`: since the request came. They return whether it is to be refused.
  bool refuses(clock::duration delay) const noexcept;
  bool refuses_at_start(clock::duration delay) noexcept;

 private:
  clock::duration limit(clock::time_point present) const noexcept;

  clock::duration limit_{};
  clock::time_point short_at_{};  // when the queue was short
  int in_line_ = 0;               // admitted, but their handlers have not begun
  std::atomic<int> requests_{0};  // a handler may end on another thread
};

/// Returns: for how long the newest bytes have lain in the socket; on a socket that does not tell,
///          how long a pass through the thread's queue takes.
/// Switchpoint.
/// Throws: a pending interruption.
clock::duration waiting_time(int socket);

}}}  // namespace motet::MOTET_ABI::http
