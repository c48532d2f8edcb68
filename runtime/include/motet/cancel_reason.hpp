// SPDX-License-Identifier: MIT
// Why a fiber, or a part of its body, was asked to end, and why those that asked were.
#pragma once

#include <cstdint>
#include <motet/call_site.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {
class interruption;
struct shared_reason;
shared_reason* retain(shared_reason* one) noexcept;
void release(shared_reason* last) noexcept;
}  // namespace detail

/// A request to end: why it was made, where, and by which fiber. If that fiber was to end itself,
/// as a parent is that ends its children because it was cancelled, cause() is the reason of that,
/// which may have a cause in turn. Copies share their causes and allocate nothing. Any thread may
/// read it.
class cancel_reason {
 public:
  cancel_reason(const cancel_reason& from) noexcept
      : text_(from.text_), asked_at_(from.asked_at_), asked_by_(from.asked_by_) {
    if (from.cause_ != nullptr) [[unlikely]]
      cause_ = detail::retain(from.cause_);
  }
  cancel_reason(cancel_reason&& from) noexcept
      : text_(from.text_),
        asked_at_(from.asked_at_),
        asked_by_(from.asked_by_),
        cause_(std::exchange(from.cause_, nullptr)) {}
  cancel_reason& operator=(cancel_reason from) noexcept {
    text_ = from.text_;
    asked_at_ = from.asked_at_;
    asked_by_ = from.asked_by_;
    std::swap(cause_, from.cause_);
    return *this;
  }
  ~cancel_reason() {
    if (cause_ != nullptr) [[unlikely]]
      detail::release(cause_);
  }

  /// Returns: the reason that was given to cancel(), or that the scope has; a string literal, never
  ///          null.
  /// Not a switchpoint.
  const char* reason() const noexcept { return text_; }
  /// Returns: the call that asked for the end, or that entered the scope whose time is up. Without
  ///          a file if motet itself asked.
  /// Not a switchpoint.
  call_site asked_at() const noexcept { return asked_at_; }
  /// Returns: the number of the fiber that asked, see fiber_ref::id(); 0 if no fiber did: a plain
  ///          thread, the clock, a stop token.
  /// Not a switchpoint.
  std::uint64_t asked_by() const noexcept { return asked_by_; }
  /// Returns: why the fiber that asked was to end itself when it did so; null if it was not, or if
  ///          there was no memory to note it. Lives as long as this object, or a copy of it.
  /// Not a switchpoint.
  const cancel_reason* cause() const noexcept;

 private:
  friend class detail::interruption;
  explicit cancel_reason(const char* text, call_site asked_at = {}, std::uint64_t asked_by = 0,
                         detail::shared_reason* cause = nullptr) noexcept
      : text_(text), asked_at_(asked_at), asked_by_(asked_by), cause_(cause) {}

  const char* text_;
  call_site asked_at_;
  std::uint64_t asked_by_;
  detail::shared_reason* cause_ = nullptr;
};

}}  // namespace motet::MOTET_ABI
