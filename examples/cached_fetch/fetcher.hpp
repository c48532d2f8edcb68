// SPDX-License-Identifier: MIT
// Fetches a value for a user: from two caches, which are searched at once, or else from the
// network.
#pragma once

#include <motet/motet.hpp>
#include <optional>
#include <string>

#include "sources.hpp"
#include "user_interface.hpp"

namespace cached_fetch {

class fetcher {
 public:
  /// Sockets are used on the threads of `sockets` only.
  fetcher(cache& memory, cache& disk, network& server, motet::thread_pool& sockets,
          user_interface& user)
      : memory_(memory), disk_(disk), server_(server), sockets_(sockets), user_(user) {}

  /// Fetches a value and shows the outcome to the user. Any number of fibers, on any threads.
  /// Returns: the same outcome; ui_closed if it could not be shown.
  /// Switchpoint.
  outcome handle(const request& wish);

 private:
  std::string obtain(const request& wish);
  std::string download(const std::string& key);
  void store(const std::string& key, const std::string& value);
  outcome show_failure(const std::string& key, const outcome& failure);

  cache& memory_;
  cache& disk_;
  network& server_;
  motet::thread_pool& sockets_;
  user_interface& user_;
};

}  // namespace cached_fetch
