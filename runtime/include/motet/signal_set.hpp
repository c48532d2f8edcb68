// SPDX-License-Identifier: MIT
// Signals that a fiber waits for.
#pragma once

#include <initializer_list>
#include <memory>
#include <motet/detail/sync/basic_cases.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// While it lives, the signals in it do nothing but make next() return. It catches them in a
/// handler and blocks none: so it may be made at any time and on any thread, and programs that are
/// started meanwhile, also by a function given to offload(), have them as they were, but for a
/// signal that was ignored, which has its default action there. In a forked child they do again
/// what they did before. Move-only.
class signal_set {
 public:
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a signal that cannot be caught, or that is a fault of the
  ///         thread, as SIGSEGV; std::logic_error if another signal_set has one of them;
  ///         std::system_error.
  signal_set(std::initializer_list<int> signals);
  signal_set(signal_set&&) noexcept;
  signal_set& operator=(signal_set&&) noexcept;
  /// From now on the signals do again what they did before.
  /// Switchpoint if a fiber is in next(), which throws bad_file_descriptor.
  ~signal_set();

  /// Waits for the next signal, in the order in which they came. A signal that has come several
  /// times before next() returned it may be returned once only.
  /// Returns: its number.
  /// Switchpoint.
  /// Throws: a pending interruption, and then no signal is lost; std::logic_error in a
  ///         forked child.
  int next();

  /// Returns: a descriptor that can be read from when next() would not wait. Not to be read from.
  /// Not a switchpoint.
  int native_handle() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// A branch that is taken when a signal of `from` has come, and then calls `then(int number)`.
/// Not a switchpoint.
template <typename F>
auto on_signal(signal_set& from, F then) {
  return on_readable(from.native_handle(),
                     [&from, then = std::move(then)]() mutable { then(from.next()); });
}

}}  // namespace motet::MOTET_ABI
