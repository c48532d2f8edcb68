// SPDX-License-Identifier: MIT
// The order in which the addresses of a host are tried.
#include "io/net/happy_eyeballs.hpp"

#include <initializer_list>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace motet;
using net::endpoint;

TEST_CASE("net::interleaved_families() alternates the addresses of two families", "[dns]") {
  const auto ordered = [](std::initializer_list<const char*> texts) {
    std::vector<endpoint> endpoints;
    for (const char* text : texts) endpoints.push_back(endpoint::parse(text));
    std::string order;
    for (const endpoint& entry : net::interleaved_families(endpoints))
      order += entry.to_string() + " ";
    return order;
  };
  CHECK(ordered({"1.1.1.1:1"}) == "1.1.1.1:1 ");
  CHECK(ordered({"1.1.1.1:1", "1.1.1.2:1"}) == "1.1.1.1:1 1.1.1.2:1 ");
  CHECK(ordered({"[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "1.1.1.2:1"}) ==
        "[::1]:1 1.1.1.1:1 [::2]:1 1.1.1.2:1 [::3]:1 ");
  CHECK(ordered({"1.1.1.1:1", "[::1]:1", "[::2]:1", "[::3]:1"}) ==
        "1.1.1.1:1 [::1]:1 [::2]:1 [::3]:1 ");
}
