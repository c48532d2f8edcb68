// SPDX-License-Identifier: MIT
// Everything motet throws, and which fiber or caller each exception is meant for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <motet/base/call_site.hpp>
#include <motet/cancellation/cancel_reason.hpp>
#include <motet/detail/base/abi.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

namespace detail {
struct control_block;
class interruption;
}  // namespace detail

/// Thrown at a switchpoint of a fiber that has been asked to end, or of a scope that has ended;
/// again at every further switchpoint, until the scope or the fiber's body is left. It always
/// concerns the fiber that catches it, and is deliberately not a std::exception: a handler for
/// failures lets it pass.
class cancelled : public cancel_reason {
 private:
  friend class detail::interruption;
  cancelled(const cancel_reason& reason, std::uint64_t id) noexcept
      : cancel_reason(reason), id_(id) {}

  std::uint64_t id_;
};

/// Thrown by with_timeout() when the time was up; its code is std::errc::timed_out.
class timed_out : public std::system_error {
 public:
  explicit timed_out(call_site site);
};

/// Thrown by awaiting a fiber that was cancelled.
/// what() contains the reason and its causes.
class fiber_cancelled : public std::runtime_error {
 public:
  fiber_cancelled(const std::string& fiber, const char* reason);
  fiber_cancelled(const std::string& fiber, const cancel_reason& reason);

  /// Returns: the reason for the cancellation, a string literal.
  /// Not a switchpoint.
  const char* reason() const noexcept { return reason_.reason(); }
  /// Returns: the same, with the requesting fiber, its call site, and the cause.
  /// Not a switchpoint.
  const cancel_reason& why() const noexcept { return reason_; }
  /// Returns: the name of the fiber that was cancelled, or its number.
  /// Not a switchpoint.
  const std::string& fiber() const noexcept { return fiber_; }

 private:
  std::string fiber_;
  cancel_reason reason_;
};

/// Thrown in the main fiber when no fiber and no thread is left that could end its wait. what()
/// lists which fiber waits for what.
class deadlock : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Thrown by suspend_with() when its resumer was dropped without having been called.
class broken_resumer : public std::logic_error {
 public:
  broken_resumer()
      : std::logic_error("suspend_with(): the resumer was destroyed without being called") {}
};

/// Thrown by a push to a closed channel, or by send() to an actor that has ended.
class channel_closed : public std::runtime_error {
 public:
  channel_closed() : std::runtime_error("the channel is closed") {}
};

/// Thrown by an acquire() of a closed semaphore.
class semaphore_closed : public std::runtime_error {
 public:
  semaphore_closed() : std::runtime_error("the semaphore is closed") {}
};

/// Thrown by pop() of a subscription that has fallen so far behind that the broadcast has dropped
/// items before it could pop them. The next pop() returns the oldest remaining item.
class items_missed : public std::runtime_error {
 public:
  explicit items_missed(std::uint64_t count);

  /// Returns: the number of items that the subscription has missed.
  /// Not a switchpoint.
  std::uint64_t count() const noexcept { return count_; }

 private:
  std::uint64_t count_;
};

/// Thrown by calls that need a whole piece, such as read_exactly() or reader::until(), if the data
/// ends first.
class unexpected_eof : public std::runtime_error {
 public:
  /// For a call that reads up to a delimiter.
  explicit unexpected_eof(std::size_t count);
  unexpected_eof(std::size_t count, std::size_t size);

  /// Returns: the number of bytes received; they are in the buffer, or still in the reader.
  /// Not a switchpoint.
  std::size_t got() const noexcept { return count_; }

 private:
  std::size_t count_;
};

/// Thrown if there is more data than the limit of the call. The data stays in the buffer.
class limit_exceeded : public std::length_error {
 public:
  limit_exceeded(std::size_t size, std::size_t limit);

  /// Returns: the number of bytes when the call gave up.
  /// Not a switchpoint.
  std::size_t size() const noexcept { return size_; }
  /// Not a switchpoint.
  std::size_t limit() const noexcept { return limit_; }

 private:
  std::size_t size_;
  std::size_t limit_;
};

/// Thrown by calls that submit work to a thread, or to a thread_pool, that accepts no more.
class executor_stopped : public std::runtime_error {
 public:
  executor_stopped() : std::runtime_error("the executor has been stopped") {}
};

/// Thrown by spin() when there is no memory, or no mapping left, for another stack.
class stack_unavailable : public std::bad_alloc {
 public:
  explicit stack_unavailable(const char* reason) noexcept : reason_(reason) {}
  const char* what() const noexcept override { return reason_; }

 private:
  const char* reason_;
};

/// Thrown by await_any() when none of its callables or fibers returned a value.
class all_failed : public std::runtime_error {
 public:
  explicit all_failed(std::vector<std::exception_ptr> errors);

  /// Returns: the failures, in the order of the arguments; never null.
  /// Not a switchpoint.
  const std::vector<std::exception_ptr>& errors() const noexcept { return errors_; }

 private:
  std::vector<std::exception_ptr> errors_;
};

/// Thrown by supervise() when a child would exceed the allowed number of restarts, once all
/// children have ended.
class too_many_restarts : public std::runtime_error {
 public:
  too_many_restarts(const std::string& child, std::size_t limit, std::exception_ptr cause);

  /// Returns: the name of the child, or its place among the arguments, from 0.
  /// Not a switchpoint.
  const std::string& child() const noexcept { return child_; }
  /// Returns: how the child failed the last time; null if it had ended without a failure.
  /// Not a switchpoint.
  const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::string child_;
  std::exception_ptr cause_;
};

namespace detail {

/// Throws std::system_error for `error` (an errno value) with "call(fd N)" as its text.
[[noreturn]] void throw_errno(int error, const char* call, int fd);
[[noreturn]] void throw_errno(int error, const char* call);

/// The only class that creates cancel_reasons, and `cancelled` exceptions, which it also numbers.
class interruption {
 public:
  static cancel_reason reason(const char* text, call_site asked_at = {}, std::uint64_t asked_by = 0,
                              shared_cause cause = {}) noexcept {
    return cancel_reason(text, asked_at, asked_by, std::move(cause));
  }
  /// Returns: `reason` as a cause that other reasons can share; empty if memory is short.
  static shared_cause share(const cancel_reason& reason) noexcept;
  /// Returns: the cause, moved out of `source`; the caller owns it.
  static noted_reason* take_cause(cancel_reason& source) noexcept {
    return std::exchange(source.cause_.note_, nullptr);
  }
  [[noreturn]] static void throw_cancelled(const cancel_reason& reason, std::uint64_t id = 0) {
    throw cancelled(reason, id);
  }
  static std::uint64_t id_of(const cancelled& c) noexcept { return c.id_; }
};

}  // namespace detail

}}  // namespace motet::MOTET_ABI
