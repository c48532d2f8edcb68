// SPDX-License-Identifier: MIT
// See words.hpp.
#include "words.hpp"

#include <array>
#include <cstdio>

namespace motet_trace {

std::string span(std::int64_t nanoseconds) {
  std::array<char, 32> text{};
  const auto ns = static_cast<double>(nanoseconds);
  if (ns < 1e6) {
    std::snprintf(text.data(), text.size(), "%.1f us", ns / 1e3);
  } else if (ns < 1e9) {
    std::snprintf(text.data(), text.size(), "%.1f ms", ns / 1e6);
  } else {
    std::snprintf(text.data(), text.size(), "%.2f s", ns / 1e9);
  }
  return text.data();
}

std::string number(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(std::size_t count, const std::string& noun) {
  return number(count) + ' ' + noun + (count == 1 ? "" : "s");
}

}  // namespace motet_trace
