// SPDX-License-Identifier: MIT
// A descriptor that its owner closes.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/taken.hpp>

namespace motet { inline namespace MOTET_ABI {

/// Owns one descriptor, or none. Move-only.
class fd {
 public:
  fd() noexcept = default;
  /// Takes ownership of the descriptor `number`; a negative number is no descriptor.
  /// Not a switchpoint.
  explicit fd(int number) noexcept : number_(number < 0 ? -1 : number) {}
  fd(fd&& other) noexcept : number_(detail::taken(other.number_, -1)) {}
  fd& operator=(fd&& other) noexcept {
    if (this != &other) {
      close();
      number_ = detail::taken(other.number_, -1);
    }
    return *this;
  }
  ~fd() { close(); }

  /// Returns: the descriptor; -1 if empty.
  /// Not a switchpoint.
  int get() const noexcept { return number_; }
  /// Not a switchpoint.
  explicit operator bool() const noexcept { return number_ >= 0; }
  /// Gives up ownership.
  /// Returns: the descriptor, now the caller's.
  /// Not a switchpoint.
  [[nodiscard]] int release() noexcept { return detail::taken(number_, -1); }

  /// Closes the descriptor, as motet::io::close() does; no effect if it is empty.
  /// Switchpoint if this thread has operations on the descriptor; nothing interrupts it.
  void close() noexcept;

 private:
  int number_ = -1;
};

}}  // namespace motet::MOTET_ABI
