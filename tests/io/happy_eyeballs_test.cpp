// SPDX-License-Identifier: MIT
// The order in which the addresses of a host are tried.
#include "io/net/happy_eyeballs.hpp"

#include <initializer_list>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace motet;
using net::endpoint;

TEST_CASE("addresses of two families take turns", "[dns]") {
  const auto ordered = [](std::initializer_list<const char*> texts) {
    std::vector<endpoint> found;
    for (const char* each : texts) found.push_back(endpoint::parse(each));
    std::string order;
    for (const endpoint& each : net::in_turns(found)) order += each.to_string() + " ";
    return order;
  };
  CHECK(ordered({"1.1.1.1:1"}) == "1.1.1.1:1 ");
  CHECK(ordered({"1.1.1.1:1", "1.1.1.2:1"}) == "1.1.1.1:1 1.1.1.2:1 ");
  CHECK(ordered({"[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "1.1.1.2:1"}) ==
        "[::1]:1 1.1.1.1:1 [::2]:1 1.1.1.2:1 [::3]:1 ");
  CHECK(ordered({"1.1.1.1:1", "[::1]:1", "[::2]:1", "[::3]:1"}) ==
        "1.1.1.1:1 [::1]:1 [::2]:1 [::3]:1 ");
}
