// SPDX-License-Identifier: MIT
// Why a fiber, or a part of its body, was asked to end, and why its requester was itself asked to.
#pragma once

#include <cstdint>
#include <motet/base/call_site.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

class cancel_reason;

namespace detail {

class interruption;
struct noted_reason;

/// Shared ownership of a reason that is the cause of other reasons; may be empty.
class shared_cause {
 public:
  shared_cause() noexcept = default;
  shared_cause(const shared_cause& other) noexcept : note_(other.note_) {
    if (note_ != nullptr) [[unlikely]]
      retain();
  }
  shared_cause(shared_cause&& other) noexcept : note_(std::exchange(other.note_, nullptr)) {}
  shared_cause& operator=(shared_cause other) noexcept {
    std::swap(note_, other.note_);
    return *this;
  }
  ~shared_cause() {
    if (note_ != nullptr) [[unlikely]]
      release();
  }

  explicit operator bool() const noexcept { return note_ != nullptr; }
  const cancel_reason* get() const noexcept;

 private:
  friend class interruption;
  explicit shared_cause(noted_reason* note) noexcept : note_(note) {}
  void retain() const noexcept;
  void release() noexcept;

  noted_reason* note_ = nullptr;
};

}  // namespace detail

/// A cancellation request: its reason, its call site, and the fiber that made it. If that fiber was
/// itself being cancelled (a cancelled parent cancels its children, for example), cause() is the
/// reason for that, which may have a cause in turn. Copies share their causes and do not allocate.
/// Any thread may read it.
class cancel_reason {
 public:
  /// Returns: the reason that was given to cancel(), or that the scope has; a string literal, never
  ///          null.
  /// Not a switchpoint.
  const char* reason() const noexcept { return text_; }
  /// Returns: the call that asked for the end, or that entered the scope whose time is up. Without
  ///          a file if motet itself asked.
  /// Not a switchpoint.
  call_site asked_at() const noexcept { return asked_at_; }
  /// Returns: the id of the fiber that made the request, see fiber_ref::id(); 0 if it came from a
  ///          plain thread, the clock, or a stop token.
  /// Not a switchpoint.
  std::uint64_t asked_by() const noexcept { return asked_by_; }
  /// Returns: why the requesting fiber was itself being cancelled at the time; null if it was not,
  ///          or if memory was short. Lives as long as this object or a copy of it.
  /// Not a switchpoint.
  const cancel_reason* cause() const noexcept { return cause_.get(); }

 private:
  friend class detail::interruption;
  explicit cancel_reason(const char* text, call_site asked_at = {}, std::uint64_t asked_by = 0,
                         detail::shared_cause cause = {}) noexcept
      : text_(text), asked_at_(asked_at), asked_by_(asked_by), cause_(std::move(cause)) {}

  const char* text_;
  call_site asked_at_;
  std::uint64_t asked_by_;
  detail::shared_cause cause_;
};

}}  // namespace motet::MOTET_ABI
