// SPDX-License-Identifier: MIT
// Blocking calls of the C library that fibers make, for example in libraries written for threads.
// In a program linked with motet-posix such a call waits as motet's own calls do: other fibers run
// meanwhile, and time limits and cancellation end it. docs/unmodified.md lists the calls. A program
// that includes this header must be linked with motet-posix.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

/// A part of a fiber's body in which its calls of the C library behave differently; in the frame of
/// that fiber.
class posix_section {
 public:
  /// 0: they block the thread. Otherwise, the error with which a time limit ends them. Without
  /// effect outside of fibers.
  /// Throws: std::bad_alloc.
  explicit posix_section(int deadline_error);
  posix_section(const posix_section&) = delete;
  posix_section& operator=(const posix_section&) = delete;
  ~posix_section();

  int deadline_error() const noexcept { return deadline_error_; }
  const posix_section* outer() const noexcept { return outer_; }

 private:
  const int deadline_error_;
  const bool is_in_fiber_;
  const posix_section* outer_ = nullptr;
};

}  // namespace detail

namespace posix {

/// Calls `f`. Calls of the C library that the running fiber makes within it block the thread, as
/// without motet: for code that no other fiber may interleave with.
/// Returns: what `f` returns.
/// Not a switchpoint, unless `f` calls motet.
/// Throws: what `f` throws; std::bad_alloc.
template <typename F>
decltype(auto) plain(F&& f) {
  const detail::posix_section section(0);
  return std::forward<F>(f)();
}

/// While it lives, a call of the running fiber that a time limit ends fails with `error`, an errno
/// value such as ETIMEDOUT, instead of ECANCELED: for a library that knows no other.
class deadline_as {
 public:
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for an error below 1, and for EAGAIN, EINTR and ETIME;
  ///         std::bad_alloc.
  explicit deadline_as(int error) : section_(checked(error)) {}

 private:
  static int checked(int error);
  detail::posix_section section_;
};

/// Returns: whether a blocking call of the C library, made by the running fiber now, would let
/// other
///          fibers run: false outside of fibers, in plain(), while a no_switch_guard exists, and
///          with MOTET_POSIX=off in the environment.
/// Not a switchpoint. Any thread.
bool switches() noexcept;

}  // namespace posix

}}  // namespace motet::MOTET_ABI
