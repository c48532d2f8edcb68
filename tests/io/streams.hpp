// SPDX-License-Identifier: MIT
// Streams and descriptors for tests: two that are connected, and what is read from them.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <motet/motet.hpp>
#include <span>
#include <string>
#include <vector>

#include "support.hpp"

namespace testing {

using namespace motet;
using net::tcp_stream;

inline std::string read_text(tcp_stream& stream, std::size_t limit = 64) {
  std::vector<std::byte> buffer(limit);
  const std::size_t size = stream.read(buffer);
  return testing::text_of(std::span(buffer).first(size));
}

inline std::string read_to_end(tcp_stream& stream) {
  std::string text;
  for (std::string part = read_text(stream, 4096); !part.empty(); part = read_text(stream, 4096)) {
    text += part;
  }
  return text;
}

inline void reset_when_closed(const tcp_stream& stream) {
  const linger at_once{1, 0};
  ::setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

inline std::string read_text(int fd, std::size_t limit = 64) {
  std::vector<std::byte> buffer(limit);
  const std::size_t size = io::read(fd, buffer);
  return testing::text_of(std::span(buffer).first(size));
}

inline std::byte one_byte[1];

}  // namespace testing
