// SPDX-License-Identifier: MIT
// A client and a server of HTTP run on simulated hosts unchanged.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <motet/testing.hpp>
#include <string>
#include <system_error>

#include "catch.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::outcome;
using motet::testing::world;

void serve_hello() {
  http::router routes;
  routes.get("/hello/{name}", [](http::request& request, http::response& response) {
    response.write("hello, " + std::string(request.parameter("name")));
  });
  net::tcp_listener listener(net::endpoint::any(80));
  http::serve(listener, routes);
}

/// Returns: the status; 0 if the connection failed.
int status_of(http::client& client, const char* address, std::string& text) {
  try {
    http::reply answer = client.get(address);
    text = answer.text();
    return answer.status();
  } catch (const std::system_error&) {
    return 0;
  } catch (const http::bad_reply&) {
    return 0;
  }
}

}  // namespace

TEST_CASE("http: a pool of connections outlives crashes of its server") {
  std::size_t failures = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const outcome result = motet::testing::run({.seed = seed}, [&](world& in) {
      host server = in.add("server", serve_hello);
      sleep_for(10ms);
      http::client client;
      std::string text;
      for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 4; ++i) {
          const bool in_time = move_on_after(20s, [&] {
            if (status_of(client, "http://server/hello/world", text) != 200) ++failures;
          });
          if (!in_time) ++failures;
          if (!in_time || text != "hello, world") text.clear();
          sleep_for(50ms);
        }
        if (text != "hello, world") throw std::runtime_error("the client has not recovered");
        in.crash(server);
        sleep_for(1s);
        in.restart(server);
        sleep_for(10ms);
      }
    });
    INFO("seed " << seed << ": " << result.failure);
    REQUIRE(result.passed);
  }
  CHECK(failures < 60);
}
