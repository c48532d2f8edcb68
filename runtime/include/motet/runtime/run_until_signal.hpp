// SPDX-License-Identifier: MIT
// The main() of a program that is ended by a signal.
#pragma once

#include <functional>
#include <motet/runtime/options.hpp>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

using signalled_main = std::function<int(std::stop_token)>;

/// `drains`: whether `f` looks at its token.
int run_until_signal(const options& settings, const signalled_main& f, bool drains);

template <typename F>
int status_of(F& f) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    f();
    return 0;
  } else {
    return f();
  }
}

}  // namespace detail

/// Calls `f` as run() does, and ends it on SIGINT and SIGTERM. If `f` accepts a std::stop_token,
/// the first of these signals requests a stop, so that `f` can shut down gracefully (see
/// serve_options.drain), and the second one cancels the call of `f`, as the end of a scope does. An
/// `f` without a parameter is cancelled by the first. After that cancellation, and after `f` has
/// returned, the signals have their former dispositions: the next one ends the process. A program
/// that reaches no switchpoint does not react to them.
/// Returns: the result of `f`, if it is an int other than 0; 128 plus the number of the first
///          signal, if there was one; else 0. These are the codes that a shell reports: 130 for
///          SIGINT, 143 for SIGTERM.
/// Switchpoint.
/// Throws: as run(); std::logic_error if a signal_set has one of the signals.
template <typename F>
int run_until_signal(const options& settings, F&& f) {
  if constexpr (std::is_invocable_v<F&, std::stop_token>) {
    return detail::run_until_signal(
        settings,
        [&f](const std::stop_token& drain) {
          auto body = [&] { return f(drain); };
          return detail::status_of(body);
        },
        true);
  } else {
    return detail::run_until_signal(
        settings, [&f](const std::stop_token&) { return detail::status_of(f); }, false);
  }
}

template <typename F>
int run_until_signal(F&& f) {
  return run_until_signal(options{}, std::forward<F>(f));
}

}}  // namespace motet::MOTET_ABI
