// SPDX-License-Identifier: MIT
// Signals that a fiber waits for.
#pragma once

#include <initializer_list>
#include <memory>
#include <motet/sync/select_cases.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// While it lives, its signals have no effect except that next() returns. It installs a handler and
/// blocks no signal, so it may be created at any time and on any thread. Programs that are started
/// meanwhile, including by a function given to offload(), have the former dispositions, except that
/// an ignored signal has its default action there. In a forked child the signals have their former
/// dispositions. Move-only.
class signal_set {
 public:
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a signal that cannot be caught, or that is a fault of the
  ///         thread, such as SIGSEGV; std::logic_error if another signal_set has one of them;
  ///         std::system_error.
  signal_set(std::initializer_list<int> signals);
  signal_set(signal_set&&) noexcept;
  signal_set& operator=(signal_set&&) noexcept;
  /// Restores the former dispositions of the signals.
  /// Switchpoint if a fiber is in next(), which throws bad_file_descriptor.
  ~signal_set();

  /// Waits for the next signal, in the order in which they came. A signal that has come several
  /// times before next() returned it may be returned once only.
  /// Returns: its number.
  /// Switchpoint.
  /// Throws: a pending interruption, and then no signal is lost; std::logic_error in a
  ///         forked child.
  int next();

  /// Returns: a descriptor that is readable when next() would not wait. Do not read from it.
  /// Not a switchpoint.
  int native_handle() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// A branch that is ready when `source` has a signal, and then calls `handler(int number)`.
/// Not a switchpoint.
template <typename F>
auto on_signal(signal_set& source, F handler) {
  return on_readable(source.native_handle(),
                     [&source, handler = std::move(handler)]() mutable { handler(source.next()); });
}

}}  // namespace motet::MOTET_ABI
