// SPDX-License-Identifier: MIT
// A client of some server, written for threads: it makes one call, which takes a second.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clients {

/// A connection, and its call.
class client {
 public:
  client() = default;
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  virtual ~client() = default;
  /// Throws: std::runtime_error.
  virtual void connect() = 0;
  /// Returns: whether the call succeeded.
  virtual bool call() = 0;
};

using connections = std::vector<std::unique_ptr<client>>;

/// A library, and how it is used.
struct library {
  std::unique_ptr<client> (*make)(const std::string& server);
  /// The library's own asynchronous mode: makes the call of each connection, all at the same time.
  /// Returns: how many succeeded.
  std::size_t (*call_all)(connections& all);
  /// Connects all for that, if connect() does not. May be null.
  void (*connect_all)(connections& all) = nullptr;
};

/// Returns: those that this program was built with, by the name of their server.
std::map<std::string_view, library>& libraries();

/// Adds one to libraries().
struct registered {
  registered(std::string_view name, library one) { libraries().emplace(name, one); }
};

/// A client of a library that leaves the waiting to its caller.
class polled_client : public client {
 public:
  /// Sends the call.
  virtual void begin() = 0;
  /// Returns: to which the answer comes.
  virtual int descriptor() = 0;
  /// Reads what has come. Returns: whether the call succeeded, once it has ended.
  virtual std::optional<bool> proceed() = 0;
};

/// Waits for many polled_client with epoll.
std::size_t call_all_polled(connections& all);

}  // namespace clients
