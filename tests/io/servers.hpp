// SPDX-License-Identifier: MIT
// Servers for tests: an echo, clients of it, and limits of the process.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstddef>
#include <motet/motet.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "io/streams.hpp"

namespace testing {

inline void echo(tcp_stream peer) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = peer.read(buffer)) peer.write_all(std::span(buffer).first(size));
}

/// Sends and receives `text`; a wrong or missing answer is false.
inline bool echoes(tcp_stream& stream, std::string_view text) {
  stream.write_all(bytes_of(text));
  std::string answer;
  while (answer.size() < text.size()) {
    const std::string part = read_text(stream);
    if (part.empty()) return false;
    answer += part;
  }
  return answer == text;
}

/// A limit of this process, for as long as it lives.
class lower_limit {
 public:
  lower_limit(__rlimit_resource resource, std::size_t soft) : resource_(resource) {
    ::getrlimit(resource, &old_limit_);
    rlimit lower = old_limit_;
    lower.rlim_cur = soft;
    ::setrlimit(resource, &lower);
  }
  lower_limit(const lower_limit&) = delete;
  lower_limit& operator=(const lower_limit&) = delete;
  ~lower_limit() { ::setrlimit(resource_, &old_limit_); }

 private:
  __rlimit_resource resource_;
  rlimit old_limit_{};
};

/// A port that nobody listens on just now.
inline net::endpoint free_port() {
  return net::tcp_listener(net::endpoint::loopback(0)).local_endpoint();
}

/// Waits until somebody listens there.
inline tcp_stream connect_when_served(const net::endpoint& address) {
  for (;;) {
    std::error_code error;
    tcp_stream stream = tcp_stream::connect(address, error);
    if (!error) return stream;
    snooze();
  }
}

}  // namespace testing
