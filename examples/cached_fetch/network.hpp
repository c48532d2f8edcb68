// SPDX-License-Identifier: MIT
// The client's side of the protocol: a length of one byte and the key go there, a length of one
// byte and the value come back. Whoever asks goes to the network's threads for it.
#pragma once

#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

#include "events.hpp"

namespace cached_fetch {

/// The server has closed the connection in the middle of a reply.
class unexpected_end : public std::runtime_error {
 public:
  unexpected_end() : std::runtime_error("eof") {}
};

/// The key does not fit into the protocol.
class invalid_key : public std::invalid_argument {
 public:
  invalid_key() : std::invalid_argument("invalid key: more than 255 bytes") {}
};

class network {
 public:
  network(motet::thread_pool& threads, event_log& log) : threads_(threads), log_(log) {}

  /// Switchpoint.
  /// Throws: invalid_key, before anything has happened; std::system_error; unexpected_end.
  std::string get(const std::string& key, const motet::net::endpoint& server);

 private:
  motet::thread_pool& threads_;
  event_log& log_;
};

}  // namespace cached_fetch
