// SPDX-License-Identifier: MIT
// Two pools, a user interface and the fetcher between them; and a server on a thread of the same
// process.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <vector>

#include "events.hpp"
#include "observed_fetcher.hpp"
#include "observed_interface.hpp"
#include "server.hpp"

namespace fetch_test {

/// A directory that is removed at the end.
class temporary_directory {
 public:
  temporary_directory();
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct size_of_house {
  std::size_t cpu = 3;
  std::size_t net = 2;
};

class house {
 public:
  /// Switchpoint.
  house(size_of_house size, const std::filesystem::path& cache_directory, event_log& log);
  house(const house&) = delete;
  house& operator=(const house&) = delete;
  /// Waits for the requests under way.
  ~house();

  motet::thread_pool& cpu() { return cpu_; }
  motet::thread_pool& net() { return net_; }
  observed_interface& ui() { return ui_; }
  observed_fetcher& fetch() { return fetcher_; }

  /// The user interface starts a request.
  question_ref ask(std::string key, const plan& course);
  /// The user interface cancels a request.
  void cancel(const question_ref& wish);

  /// Returns: a line for each fiber of the program that lives on a thread of the pools.
  /// Switchpoint.
  std::vector<std::string> fibers_alive();
  std::size_t threads() const { return size_.cpu + size_.net + 2; }  // with ui and main

 private:
  const size_of_house size_;
  motet::thread_pool cpu_;
  motet::thread_pool net_;
  observed_interface ui_;
  observed_fetcher fetcher_;
};

/// A server on a thread of this process.
class own_server {
 public:
  /// Switchpoint, until it is ready.
  explicit own_server(manners conduct = {});

  const motet::net::endpoint& where() const { return where_; }
  const server& state() const { return server_; }

 private:
  server server_;
  const motet::net::endpoint where_;
  motet::thread thread_;
};

/// Returns: an address at which nobody listens.
motet::net::endpoint nowhere();

/// Returns: how many descriptors this process has open.
std::size_t count_descriptors();

}  // namespace fetch_test
