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

namespace fetch_test {

enum class mode { story, serve, fetch, check, help };

struct options {
  mode chosen_mode = mode::story;
  std::uint16_t port = 0;
  manners server = {};
  plan course = {};
  size_of_house size = {};
  std::optional<std::filesystem::path> cache_directory = {};
  std::optional<std::filesystem::path> events = {};  // their file; else standard output
  std::vector<std::string> keys = {};                // to fetch
  std::string check = {};
  double slack = 1;
  bool watched = false;
  std::chrono::seconds length{5};
  std::optional<std::uint64_t> seed = {};
  int requests = 10'000;
};

/// Throws: std::invalid_argument with the reason.
options parse_options(int count, char** words);

const char* usage();

}  // namespace fetch_test
