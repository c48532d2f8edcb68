// SPDX-License-Identifier: MIT
// Calling a function periodically.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/sync/time.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// When the next call comes.
enum class pace : std::uint8_t {
  aligned,  // at multiples of the period since the start; missed calls are skipped
  delayed,  // a period after the last call has ended
};

struct every_options {
  detail::timespan period;
  pace when = pace::aligned;
  // Called with an exception thrown by a call or raised in the fiber, after which every()
  // continues. Without on_error, or if on_error throws, the exception ends every(). A cancellation
  // always ends it.
  std::function<void(std::exception_ptr)> on_error = {};
};

namespace detail {

[[noreturn]] void refuse_period();

/// The instants of the calls.
class beat {
 public:
  /// Throws: std::invalid_argument if the period is 0.
  explicit beat(const every_options& options)
      : period_(options.period.length), pace_(options.when) {
    if (period_ <= clock::duration::zero()) refuse_period();
  }

  void await_next() {
    if (period_ >= clock::duration::max() / 4) sleep();  // longer than any clock runs
    const clock::time_point time = clock::now();
    if (pace_ == pace::delayed) {
      sleep_for(period_);
      return;
    }
    // At least one period after the last call was due.
    if (next_ <= time) next_ += period_ * ((time - next_) / period_ + 1);
    sleep_until(next_);
  }

 private:
  const clock::duration period_;
  const pace pace_;
  clock::time_point next_ = clock::now();
};

/// Returns: whether to continue.
template <typename F>
bool call_again(F& f) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    std::invoke(f);
    return true;
  } else {
    return static_cast<bool>(std::invoke(f));
  }
}

}  // namespace detail

/// Calls f() at the end of each period, the first time one period from now, until f() returns false
/// (if it returns anything) or throws.
/// Switchpoint.
/// Throws: a pending interruption, what `f` throws; std::invalid_argument if the period is
///         not positive.
template <std::invocable F>
void every(const every_options& options, F f) {
  detail::beat next(options);
  for (bool again = true; again;) {
    next.await_next();
    try {
      again = detail::call_again(f);
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      if (!options.on_error) throw;
      options.on_error(std::current_exception());
    }
  }
}

/// The same with an aligned period, ended by the first exception.
/// Switchpoint.
template <std::invocable F>
void every(detail::timespan period, F f) {
  every(every_options{.period = period}, std::move(f));
}

}}  // namespace motet::MOTET_ABI
