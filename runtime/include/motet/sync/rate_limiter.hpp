// SPDX-License-Identifier: MIT
// A limit on the number of acquisitions per period.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/detail/platform/one_shot_event.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/sync/shared_lifetime.hpp>
#include <motet/sync/event.hpp>
#include <motet/sync/mutex.hpp>
#include <mutex>
#include <optional>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// A rate_limiter's figures, for monitoring.
struct rate_limiter_stats {
  std::size_t burst = 0;
  std::size_t free = 0;     // acquisitions that fit the rate now
  std::size_t waiting = 0;  // fibers and threads
};

namespace detail {

[[noreturn]] void refuse_rate();

/// Wakes the fibers, and the threads without fibers, that wait at a limiter when the limiter ends.
template <typename Sharing>
class last_call {
 public:
  void set() {
    for_fibers_.set();
    for_threads_.set();
  }
  /// Waits for set(), but only until `deadline`.
  void rest_until(clock::time_point deadline);

 private:
  basic_event<Sharing> for_fibers_;
  one_shot_event for_threads_;
};

extern template void last_call<shared_policy>::rest_until(clock::time_point);
extern template void last_call<local_policy>::rest_until(clock::time_point);

template <typename Sharing>
class basic_rate_limiter {
 public:
  /// Allows `count` acquisitions per `period`, evenly spread; after a pause up to `burst` at once.
  /// The rate is an upper limit: waiters wake some 50 us late, which only a burst makes up for.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if an argument is 0, or a burst takes more than 70 years;
  ///         std::bad_alloc.
  /// Source: the generic cell rate algorithm, ITU-T I.371, as virtual scheduling.
  basic_rate_limiter(std::size_t count, timespan period, std::size_t burst = 1)
      : state_(new state(interval(count, period, burst), burst)) {}
  basic_rate_limiter(const basic_rate_limiter&) = delete;
  basic_rate_limiter& operator=(const basic_rate_limiter&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_rate_limiter() { state_->end(); }

  /// Waits until `cost` more fit into the rate; callers that came before are served first. An
  /// interrupted call takes nothing.
  /// Switchpoint; switches only if it must wait.
  /// Throws: a pending interruption; std::invalid_argument if `cost` is 0 or more than the
  ///         burst; std::logic_error if the limiter is destroyed meanwhile.
  void acquire(std::size_t cost = 1) {
    state_->check(cost);
    Sharing::enter();
    if (state_->try_acquire(cost)) return;
    const shared_owner<state> stays(*state_);
    stays->acquire(cost);
  }

  /// Takes `cost` if that needs no waiting, and no other caller waits.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if `cost` is 0 or more than the burst.
  bool try_acquire(std::size_t cost = 1) {
    state_->check(cost);
    return state_->try_acquire(cost);
  }

  /// Returns: the limiter's state. Not a switchpoint.
  rate_limiter_stats stats() { return state_->stats(); }

 private:
  static clock::duration interval(std::size_t count, timespan period, std::size_t burst) {
    if (count == 0 || period.length <= clock::duration::zero() || burst == 0) refuse_rate();
    const auto length = static_cast<std::size_t>(period.length.count());
    const std::size_t part = length / count + (length % count != 0 ? 1 : 0);  // rounded up
    if (burst > longest / part) refuse_rate();
    return clock::duration(static_cast<clock::rep>(part));
  }

  class state : public shared_lifetime<Sharing> {
   public:
    state(clock::duration interval, std::size_t burst) noexcept
        : interval_(interval), burst_(burst) {}

    void check(std::size_t cost) const {
      if (cost == 0 || cost > burst_) refuse_rate();
    }

    bool try_acquire(std::size_t cost) {
      const std::lock_guard lock(this->sharing);
      forget_gone();
      const bool nobody_waits = this->owners == 1;
      return nobody_waits && try_reserve(cost) == no_delay;
    }

    void acquire(std::size_t cost) {
      const std::lock_guard lock(*queue_mutex_);
      for (;;) {
        const clock::time_point fits = acquire_unless_ended(cost);
        if (fits == no_delay) return;
        last_call_.rest_until(fits);
      }
    }

    rate_limiter_stats stats() {
      const std::lock_guard lock(this->sharing);
      forget_gone();
      const clock::duration debt = std::max(spoken_for_ - clock::now(), clock::duration::zero());
      const clock::duration remaining = interval_ * static_cast<clock::rep>(burst_) - debt;
      return {burst_, static_cast<std::size_t>(remaining / interval_), this->owners - 1};
    }

    void end() noexcept {
      if (shared_lifetime<Sharing>::end()) last_call_.set();
    }

   private:
    /// A forked child forgets the waiters of its parent, and which of them held the mutex.
    void forget_gone() {
      if (detail::taken(used_in_, this_process()) == this_process()) return;
      this->owners = 1;
      queue_mutex_.emplace();
    }

    clock::time_point acquire_unless_ended(std::size_t cost) {
      const std::lock_guard lock(this->sharing);
      if (this->ended) throw_destroyed();
      return try_reserve(cost);
    }

    /// Returns: `no_delay`, or the time at which `cost` will fit.
    clock::time_point try_reserve(std::size_t cost) noexcept {
      const clock::time_point time = clock::now();
      const clock::time_point end =
          std::max(spoken_for_, time) + interval_ * static_cast<clock::rep>(cost);
      const clock::time_point fits = end - interval_ * static_cast<clock::rep>(burst_);
      if (fits > time) return fits;
      spoken_for_ = end;
      return no_delay;
    }

    const clock::duration interval_;
    const std::size_t burst_;
    clock::time_point spoken_for_{};  // until then the rate is used up, except for the burst
    std::uint32_t used_in_ = this_process();
    // Held by the first that waits.
    std::optional<basic_mutex<Sharing>> queue_mutex_{std::in_place};
    last_call<Sharing> last_call_;
  };

  static constexpr clock::time_point no_delay = clock::time_point::min();
  /// The longest burst, in nanoseconds: no sum with the present time can overflow.
  static constexpr std::size_t longest = clock::duration::max().count() / 4;

  const shared_owner<state> state_;
};

}  // namespace detail

/// For fibers and threads.
using rate_limiter = detail::basic_rate_limiter<detail::shared_policy>;

namespace local {
/// For the fibers of one thread.
using rate_limiter = detail::basic_rate_limiter<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
