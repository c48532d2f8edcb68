// SPDX-License-Identifier: MIT
// What texts in a head may be made of. Source: RFC 9110, 5.5 and 5.6.2.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/base/abi.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool equal_but_for_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

namespace characters {

inline constexpr std::array<bool, 256> of_tokens = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789"
                                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();

}  // namespace characters

constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return characters::of_tokens[static_cast<unsigned char>(c)];
  });
}

constexpr bool is_field_value(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
  });
}

/// Returns: `text` as a number; std::nullopt unless all of it is digits, and not too many.
constexpr std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// `base`: 10 or 16.
inline void append_number(std::string& output, std::uint64_t number, int base = 10) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  output.append(digits.data(), end);
}

/// Returns: the part before `separator`, or all of it; `text` keeps the part behind it.
constexpr std::string_view split_before(std::string_view& text, char separator) noexcept {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Returns: a duration in seconds, such as "1.5"; std::nullopt if `text` is none, or too large.
inline std::optional<clock::duration> seconds_of(std::string_view text) noexcept {
  std::string_view digits = text;
  const std::optional<std::uint64_t> whole = number_of(split_before(digits, '.'));
  if (!whole.has_value() || *whole > 1'000'000'000 || text.ends_with('.')) return std::nullopt;
  auto total = std::chrono::nanoseconds(std::chrono::seconds(*whole));
  auto unit = std::chrono::nanoseconds(std::chrono::seconds(1));
  for (const char digit : digits) {
    if (!is_digit(digit)) return std::nullopt;
    unit /= 10;
    total += unit * (digit - '0');
  }
  return total;
}

}}}  // namespace motet::MOTET_ABI::http
