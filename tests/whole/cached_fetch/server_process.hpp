// SPDX-License-Identifier: MIT
// This program again, as a server in a process of its own.
#pragma once

#include <sys/types.h>

#include <motet/motet.hpp>

#include "server.hpp"

namespace fetch_test {

class server_process {
 public:
  /// Blocks until the server listens.
  /// Throws: std::system_error, std::runtime_error.
  explicit server_process(const manners& conduct);
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;
  /// Ends the process.
  ~server_process();

  pid_t process() const { return process_; }
  const motet::net::endpoint& where() const { return where_; }

 private:
  pid_t process_ = -1;
  motet::net::endpoint where_;
};

}  // namespace fetch_test
