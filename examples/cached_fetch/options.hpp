// SPDX-License-Identifier: MIT
// The words of the command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "house.hpp"
#include "plan.hpp"
#include "server.hpp"

namespace cached_fetch {

enum class mode { scenario, serve, fetch, check, load, help };

struct options {
  mode what = mode::scenario;
  std::uint16_t port = 0;
  manners server = {};
  plan how = {};
  size_of_house size = {};
  std::optional<std::filesystem::path> cache_directory = {};
  std::optional<std::filesystem::path> events = {};  // where they go; else to standard output
  std::vector<std::string> keys = {};                // to fetch
  std::string check = {};
  double slack = 1;
  bool watched = false;
  std::chrono::seconds length{5};
  std::optional<std::uint64_t> seed = {};
  int requests = 10'000;
  int in_flight = 100;
};

/// Throws: std::invalid_argument that says what is wrong.
options parse_options(int count, char** words);

const char* usage();

}  // namespace cached_fetch
