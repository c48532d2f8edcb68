// SPDX-License-Identifier: MIT
// The other side: who sends a key is answered with the key and " world!". It can be asked to behave
// badly.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <motet/motet.hpp>
#include <optional>
#include <vector>

namespace cached_fetch {

struct manners {
  std::chrono::milliseconds reply_after{20};
  bool accept_hangs = false;                    // nobody gets as far as being connected
  bool reply_hangs = false;                     // a request is read and not answered
  std::optional<std::size_t> close_after = {};  // so many bytes of the reply
};

/// Serves on the thread, and in the scope, that calls serve(); the counts are for any thread.
class server {
 public:
  /// Not a switchpoint.
  /// Throws: std::system_error.
  server(std::uint16_t port, manners how);

  motet::net::endpoint where() const { return listener_.local_endpoint(); }
  /// Switchpoint. Returns only by an exception.
  void serve();

  /// Returns: whether it behaves by now as it is to.
  bool is_ready() const { return ready_; }
  int connections() const { return connections_; }
  int requests() const { return requests_; }
  /// How many connections have been closed by the other side.
  int closed() const { return closed_; }

 private:
  void answer(motet::net::tcp_stream client);
  void keep_everybody_waiting();

  const manners how_;
  motet::net::tcp_listener listener_;
  std::atomic<bool> ready_{false};
  std::atomic<int> connections_{0};
  std::atomic<int> requests_{0};
  std::atomic<int> closed_{0};
};

}  // namespace cached_fetch
