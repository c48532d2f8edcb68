// SPDX-License-Identifier: MIT
// Children that are started again when they end. A child is made by a factory, because a callable
// that was moved into a fiber and has run cannot run again.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// When to restart a child that has ended.
/// Cancellation counts as an end without a failure.
enum class restart_policy { always, on_failure, never };

/// Which other children are cancelled and restarted with a child: none; all; those after it among
/// the arguments. A child that has ended for good, or has the policy `never`, is not restarted with
/// others either.
enum class restart_strategy { one_for_one, one_for_all, rest_for_one };

/// An event in the life of a child.
struct supervise_event {
  enum class kind {
    started,
    ended,       // without a failure, or cancelled
    failed,      // with `error`
    restarting,  // the child will be started after `delay`
    gave_up,     // the child ended too often; `error` is its last failure, or null
  };
  kind what;
  /// The child's name, or its place among the arguments, from 0. Valid during the call.
  const std::string& child;
  std::exception_ptr error = {};
  clock::duration delay = {};
};

struct supervise_options {
  restart_strategy strategy = restart_strategy::one_for_one;
  /// At most this many restarts within `window`, which is more than 0. Only the restart of the
  /// child that has ended counts, not those of others that the strategy restarts with it.
  std::size_t restarts = 3;
  clock::duration window = std::chrono::seconds(5);
  /// The delay before a restart. It is doubled each time, up to `longest_delay`, and begins anew
  /// when the child has run for `window`.
  clock::duration delay = std::chrono::milliseconds(10);
  clock::duration longest_delay = std::chrono::seconds(10);
  /// Up to this part of each delay, in [0, 1], is left out at random, so that children that failed
  /// together are not restarted together.
  double jitter = 0.1;
  /// Called with each event, in the supervising fiber; it may call switchpoints. An exception that
  /// it throws ends all children, and supervise() throws it. It is not called for children that end
  /// because supervise() is left by another exception.
  std::function<void(const supervise_event&)> on_event = {};
};

namespace detail {

/// Runs a child: calls `make()`, and then its result, if that is callable.
class child_maker {
 public:
  child_maker() = default;
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, child_maker>)
  child_maker(F&& make) {
    using stored_callable = std::decay_t<F>;
    if constexpr (std::is_pointer_v<stored_callable> || requires { make.operator bool(); }) {
      if (!make) return;
    }
    run_ = [factory = std::make_shared<stored_callable>(std::forward<F>(make))] { run(*factory); };
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
  /// The name of the child's fiber; may be empty.
  std::string name = {};
  restart_policy restart = restart_policy::always;
  /// A callable that is called anew for each start, in the new fiber. If it returns a callable,
  /// that is called as the child's body. May borrow from the caller of supervise().
  detail::child_maker make = {};
};

/// Starts a child for each of `children`, in their order, and restarts children that end, until no
/// child runs or is to be restarted. Children are ended one by one, in reverse order.
/// Switchpoint.
/// Throws: too_many_restarts; std::invalid_argument for impossible options, no children, or an
///         empty `make`, before any child is started; as motet::spin();
///         a pending interruption. All children have ended by then.
void supervise(const supervise_options& options, std::vector<child_spec> children);

/// The same for child_specs as arguments.
/// Switchpoint.
template <typename... Specs>
  requires(std::is_same_v<std::remove_cvref_t<Specs>, child_spec> && ...)
void supervise(const supervise_options& options, Specs&&... children) {
  // The common type is child_spec, but naming it would compile this vector even without a call.
  std::vector<std::common_type_t<child_spec, std::remove_cvref_t<Specs>...>> specs;
  specs.reserve(sizeof...(Specs));
  (specs.push_back(std::forward<Specs>(children)), ...);
  supervise(options, std::move(specs));
}

}}  // namespace motet::MOTET_ABI
