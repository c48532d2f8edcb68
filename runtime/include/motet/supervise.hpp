// SPDX-License-Identifier: MIT
// Children that are started again when they end: by factories, as a callable that has run cannot
// run again.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <motet/clock.hpp>
#include <motet/errors.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// When a child that has ended is to be started again. One that somebody has cancelled has ended
/// without a failure.
enum class restart_policy { always, on_failure, never };

/// Which others are ended and started again with a child that is: none; all; those that stand after
/// it. What has ended for good, or is never restarted, is not started again with others either.
enum class restart_strategy { one_for_one, one_for_all, rest_for_one };

/// What has happened to a child.
struct supervise_event {
  enum class kind {
    started,
    ended,       // without a failure, or because it was cancelled
    failed,      // with `error`
    restarting,  // it will be started after `delay`
    gave_up,     // it was to be restarted too often; `error` is how it failed last, or null
  };
  kind what;
  /// Its name, or its place among the arguments, from 0. Valid during the call.
  const std::string& child;
  std::exception_ptr error = {};
  clock::duration delay = {};
};

struct supervise_options {
  restart_strategy strategy = restart_strategy::one_for_one;
  /// At most so many restarts within `window`, which is more than 0; those of a strategy's others
  /// are not counted.
  std::size_t restarts = 3;
  clock::duration window = std::chrono::seconds(5);
  /// What is waited for before a restart: doubled each time, up to `longest_delay`, until the child
  /// has once run for `window`.
  clock::duration delay = std::chrono::milliseconds(10);
  clock::duration longest_delay = std::chrono::seconds(10);
  /// Up to this part of each delay, in [0, 1], is left out by chance, so that those who failed
  /// together do not come back together.
  double jitter = 0.1;
  /// Told of each event, in the supervising fiber, and may call switchpoints; what it throws ends
  /// all children and is thrown.
  /// Not told of children that end because supervise() is left by an exception of others.
  std::function<void(const supervise_event&)> on_event = {};
};

namespace detail {

/// Runs a child: what `make` returns, if that can be called, else `make` itself was the child.
class child_maker {
 public:
  child_maker() = default;
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, child_maker>)
  child_maker(F&& make) {
    using kept = std::decay_t<F>;
    if constexpr (std::is_pointer_v<kept> || requires { make.operator bool(); }) {
      if (!make) return;
    }
    run_ = [made = std::make_shared<kept>(std::forward<F>(make))] { run(*made); };
  }

  explicit operator bool() const noexcept { return run_ != nullptr; }
  void operator()() const { run_(); }

 private:
  template <typename F>
  static void run(F& make) {
    if constexpr (std::is_invocable_v<std::add_lvalue_reference_t<std::invoke_result_t<F&>>>) {
      auto&& body = make();
      body();
    } else {
      make();
    }
  }

  std::function<void()> run_;
};

}  // namespace detail

struct child_spec {
  /// Its fiber's name; may be empty.
  std::string name = {};
  restart_policy restart = restart_policy::always;
  /// Any callable, called anew for each start, in the new fiber. If it returns something that can
  /// be called, that is the child's body. May borrow from the caller of supervise().
  detail::child_maker make = {};
};

/// Starts a child for each of `children`, in their order, and restarts those that end, until none
/// runs nor is to be restarted. What must end is ended in the opposite order, one by one.
/// Switchpoint.
/// Throws: too_many_restarts; std::invalid_argument for options that cannot be, no children, or one
///         that has nothing to call, before anything is started; as motet::spin(); what is pending
///         for this fiber. All children have ended then.
void supervise(const supervise_options& how, std::vector<child_spec> children);

/// The same for child_specs as arguments.
/// Switchpoint.
template <typename... Specs>
  requires(std::is_same_v<std::remove_cvref_t<Specs>, child_spec> && ...)
void supervise(const supervise_options& how, Specs&&... children) {
  std::vector<child_spec> specs;
  specs.reserve(sizeof...(Specs));
  (specs.push_back(std::forward<Specs>(children)), ...);
  supervise(how, std::move(specs));
}

}}  // namespace motet::MOTET_ABI
