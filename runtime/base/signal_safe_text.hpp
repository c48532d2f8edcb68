// SPDX-License-Identifier: MIT
// Text that is put together without allocation, for signal handlers. What does not fit is cut off.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <string_view>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <std::size_t Size>
class line {
 public:
  line& operator<<(std::string_view text) noexcept {
    for (const char byte : text) {
      if (size_ < text_.size()) text_[size_++] = byte;
    }
    return *this;
  }
  line& operator<<(std::uint64_t number) noexcept { return append(number, 10); }
  line& hex(std::uint64_t number) noexcept {
    *this << "0x";
    return append(number, 16);
  }
  /// Writes the text in one call, so that the lines of several threads do not mix.
  void write() const noexcept {
    [[maybe_unused]] const ssize_t bytes_written = sys::write(STDERR_FILENO, text_.data(), size_);
  }

 private:
  line& append(std::uint64_t number, unsigned base) noexcept {
    std::array<char, 20> digits;
    std::size_t first = digits.size();
    do {
      digits[--first] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number > 0);
    return *this << std::string_view(&digits[first], digits.size() - first);
  }

  std::array<char, Size> text_;
  std::size_t size_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
