// SPDX-License-Identifier: MIT
// The other side: it answers a key with the key and " world!", or behaves badly on purpose.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <motet/motet.hpp>
#include <optional>
#include <vector>

namespace fetch_test {

struct manners {
  std::chrono::milliseconds reply_after{20};
  bool accept_hangs = false;                    // no client can connect
  bool reply_hangs = false;                     // a request is read and not answered
  std::optional<std::size_t> close_after = {};  // so many bytes of a reply
};

/// Serves on the thread that calls serve(). Any thread may read the counts.
class server {
 public:
  /// Not a switchpoint.
  /// Throws: std::system_error.
  server(std::uint16_t port, manners conduct);

  motet::net::endpoint where() const { return listener_.local_endpoint(); }
  /// Switchpoint. Returns only by an exception.
  void serve();

  /// Returns: whether the server behaves as its manners say.
  bool is_ready() const { return ready_; }
  int connections() const { return connections_; }
  int requests() const { return requests_; }
  /// Returns: how many connections the clients have closed.
  int closed() const { return closures_; }

 private:
  void answer(motet::net::tcp_stream client);
  void keep_everybody_waiting();

  const manners manners_;
  motet::net::tcp_listener listener_;
  std::atomic<bool> ready_{false};
  std::atomic<int> connections_{0};
  std::atomic<int> requests_{0};
  std::atomic<int> closures_{0};
};

}  // namespace fetch_test
