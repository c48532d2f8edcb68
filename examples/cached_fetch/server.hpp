// SPDX-License-Identifier: MIT
// A server on a thread of its own: it answers a key with the key and " world!", after a delay, and
// keys that begin with "slow" after an hour.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <motet/motet.hpp>
#include <utility>

#include "protocol.hpp"

namespace cached_fetch {

class server {
 public:
  /// Switchpoint.
  explicit server(std::chrono::milliseconds delay) : delay_(delay), thread_([this] { serve(); }) {}

  motet::net::endpoint where() const { return listener_.local_endpoint(); }
  /// Any thread.
  int requests() const { return requests_; }

 private:
  void serve() {
    listener_.serve([this](motet::net::tcp_stream peer) { answer(std::move(peer)); },
                    [](const std::exception_ptr&) {});  // a client that hangs up is no failure
  }

  void answer(motet::net::tcp_stream peer) {
    for (;;) {
      const std::string key = receive_text(peer);
      ++requests_;
      if (key.starts_with("slow")) motet::sleep_for(std::chrono::hours(1));
      if (delay_.count() > 0) motet::sleep_for(delay_);
      send_text(peer, key + " world!");
    }
  }

  const std::chrono::milliseconds delay_;
  std::atomic<int> requests_{0};
  motet::net::tcp_listener listener_{motet::net::endpoint::loopback(0)};
  motet::thread thread_;
};

}  // namespace cached_fetch
