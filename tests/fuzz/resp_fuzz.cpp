// SPDX-License-Identifier: MIT
// A command of the protocol of Redis is taken when it is all there, and not before, whatever comes
// behind it; and what was written as a command is read as it.
#include <string>
#include <string_view>
#include <vector>

#include "../examples/kv_server/resp.hpp"
#include "check.hpp"

using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> words;
  std::size_t length = 0;
  try {
    length = resp::take_command(text, words);
  } catch (const resp::protocol_error&) {
    return 0;
  }
  require(length <= size);
  const std::vector<std::string> command(words.begin(), words.end());
  std::string again;
  if (length > 0) resp::add_command(again, words);
  for (std::size_t part = 0; part < length; ++part) {
    require(resp::take_command(text.substr(0, part), words) == 0);
  }
  if (length > 0) {
    require(resp::take_command(again, words) == again.size());
    require(std::vector<std::string>(words.begin(), words.end()) == command);
  }
  return 0;
}
