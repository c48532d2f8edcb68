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
inline bool take_number(std::string_view& text, char mark, std::size_t maximum,
                        std::size_t& number) {
  if (text.empty()) return false;
  if (text.front() != mark) throw protocol_error(std::string("expected '") + mark + "'");
  const std::size_t end = text.find("\r\n");
  // The line end may be there by half.
  if (end == std::string_view::npos ? text.size() > 33 : end > 32) {
    throw protocol_error("a number that is too long");
  }
  if (end == std::string_view::npos) return false;
  const char* last = text.data() + end;
  const auto [stop, error] = std::from_chars(text.data() + 1, last, number);
  if (error != std::errc() || stop != last || number > maximum)
    throw protocol_error("invalid length");
  text.remove_prefix(end + 2);
  return true;
}

/// Takes the first command of `bytes`: its words, which are views of that.
/// Returns: how many bytes it has; 0 if it is not all there.
inline std::size_t take_command(std::string_view bytes, std::vector<std::string_view>& words) {
  std::string_view rest = bytes;
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
  return bytes.size() - rest.size();
}

inline void add_number(std::string& output, char mark, long long number) {
  output.append(1, mark).append(std::to_string(number)).append("\r\n");
}

inline void add_text(std::string& output, std::string_view text) {
  add_number(output, '$', static_cast<long long>(text.size()));
  output.append(text).append("\r\n");
}

inline void add_command(std::string& output, const std::vector<std::string_view>& words) {
  add_number(output, '*', static_cast<long long>(words.size()));
  for (const std::string_view word : words) add_text(output, word);
}

}  // namespace resp
