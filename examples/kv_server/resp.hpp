// SPDX-License-Identifier: MIT
// The protocol of Redis, as far as a server needs it. Source: the "RESP protocol spec" of Redis.
#pragma once

#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace resp {

constexpr std::size_t most_words = 1024;
constexpr std::size_t longest_word = std::size_t{16} * 1024 * 1024;

struct protocol_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Takes a line that begins with `mark` and holds a number. Returns: false if it is not all there.
inline bool take_number(std::string_view& from, char mark, std::size_t most, std::size_t& number) {
  if (from.empty()) return false;
  if (from.front() != mark) throw protocol_error(std::string("expected '") + mark + "'");
  const std::size_t end = from.find("\r\n");
  // The line end may be there by half.
  if (end == std::string_view::npos ? from.size() > 33 : end > 32) {
    throw protocol_error("a number that is too long");
  }
  if (end == std::string_view::npos) return false;
  const char* last = from.data() + end;
  const auto [stop, error] = std::from_chars(from.data() + 1, last, number);
  if (error != std::errc() || stop != last || number > most) throw protocol_error("invalid length");
  from.remove_prefix(end + 2);
  return true;
}

/// Takes the first command of `held`: its words, which are views of that.
/// Returns: how many bytes it has; 0 if it is not all there.
inline std::size_t take_command(std::string_view held, std::vector<std::string_view>& words) {
  std::string_view rest = held;
  std::size_t count = 0;
  words.clear();
  if (!take_number(rest, '*', most_words, count)) return 0;
  for (; count > 0; --count) {
    std::size_t size = 0;
    if (!take_number(rest, '$', longest_word, size) || rest.size() < size + 2) return 0;
    if (rest.substr(size, 2) != "\r\n") throw protocol_error("a word without an end");
    words.push_back(rest.substr(0, size));
    rest.remove_prefix(size + 2);
  }
  return held.size() - rest.size();
}

inline void add_number(std::string& to, char mark, long long number) {
  to.append(1, mark).append(std::to_string(number)).append("\r\n");
}

inline void add_text(std::string& to, std::string_view text) {
  add_number(to, '$', static_cast<long long>(text.size()));
  to.append(text).append("\r\n");
}

inline void add_command(std::string& to, const std::vector<std::string_view>& words) {
  add_number(to, '*', static_cast<long long>(words.size()));
  for (const std::string_view each : words) add_text(to, each);
}

}  // namespace resp
