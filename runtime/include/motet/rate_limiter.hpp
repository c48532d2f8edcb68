// SPDX-License-Identifier: MIT
// So many times in a period, and no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <motet/clock.hpp>
#include <motet/detail/timespan.hpp>
#include <motet/mutex.hpp>
#include <mutex>

namespace motet::inline MOTET_ABI {

namespace detail {

[[noreturn]] void refuse_rate();
/// Sleeps, or blocks a thread without fibers.
void rest_until(clock::time_point when);

template <typename Sharing>
class basic_rate_limiter {
 public:
  /// `count` acquisitions in each `period`, evenly spread; after a pause up to `burst` at once.
  /// Throws: std::invalid_argument if one of them is 0, or a burst takes more than 70 years.
  /// Source: the generic cell rate algorithm, ITU-T I.371, as virtual scheduling.
  basic_rate_limiter(std::size_t count, timespan period, std::size_t burst = 1) : burst_(burst) {
    if (count == 0 || period.length <= clock::duration::zero() || burst == 0) refuse_rate();
    const auto parts = static_cast<clock::rep>(count);
    interval_ = std::max(clock::duration(1), (period.length + clock::duration(parts - 1)) / parts);
    if (burst > static_cast<std::size_t>(longest / interval_)) refuse_rate();
  }

  /// Waits until `cost` more fit into the rate; those who came before are served first. What is
  /// interrupted takes nothing. The limiter must outlive the call.
  /// Switchpoint; switches only if it must wait.
  /// Throws: what is pending for this fiber; std::invalid_argument if `cost` is 0 or more than the
  ///         burst.
  void acquire(std::size_t cost = 1) {
    check(cost);
    const std::lock_guard turn(turn_);
    if (try_acquire(cost)) return;
    const resting mark(*this);
    for (clock::time_point fits; (fits = take(cost)) != taken;) rest_until(fits);
  }

  /// Takes `cost` if that needs no waiting, and nobody waits.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if `cost` is 0 or more than the burst.
  bool try_acquire(std::size_t cost = 1) {
    check(cost);
    return take(cost, true) == taken;
  }

 private:
  void check(std::size_t cost) const {
    if (cost == 0 || cost > burst_) refuse_rate();
  }

  /// While it lives somebody waits, whom nobody overtakes.
  class resting {
   public:
    explicit resting(basic_rate_limiter& limiter) : of_(limiter) { say(true); }
    resting(const resting&) = delete;
    resting& operator=(const resting&) = delete;
    ~resting() { say(false); }

   private:
    void say(bool now) {
      const std::lock_guard in(of_.sharing_);
      of_.somebody_waits_ = now;
    }
    basic_rate_limiter& of_;
  };

  static constexpr clock::time_point taken = clock::time_point::min();

  /// Returns: `taken`, or when it will fit; for one who may not wait, if somebody does, just
  /// another
  ///          time.
  clock::time_point take(std::size_t cost, bool in_passing = false) {
    const std::lock_guard in(sharing_);
    const clock::time_point now = clock::now();
    const clock::time_point after =
        std::max(spoken_for_, now) + interval_ * static_cast<clock::rep>(cost);
    const clock::time_point fits = after - interval_ * static_cast<clock::rep>(burst_);
    if (fits > now || (in_passing && somebody_waits_)) return fits;
    spoken_for_ = after;
    return taken;
  }

  /// Far enough from what a time point can hold.
  static constexpr clock::duration longest = clock::duration::max() / 4;

  basic_mutex<Sharing> turn_;  // of those who wait
  Sharing sharing_;            // guards what follows
  bool somebody_waits_ = false;
  const std::size_t burst_;
  clock::duration interval_{};
  clock::time_point spoken_for_{};  // until then everything before the burst is
};

}  // namespace detail

/// For fibers and threads.
using rate_limiter = detail::basic_rate_limiter<detail::any_thread>;

namespace local {
/// For the fibers of one thread.
using rate_limiter = detail::basic_rate_limiter<detail::one_thread>;
}  // namespace local

}  // namespace motet::inline MOTET_ABI
