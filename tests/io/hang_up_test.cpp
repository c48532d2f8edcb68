// SPDX-License-Identifier: MIT
// Work that ends when its peer hangs up, listeners on all addresses of a name, and sockets from a
// supervisor.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/servers.hpp"
#include "io/streams.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;
using testing::error_of;

namespace {

struct connection {
  connection() : peer(tcp_stream::connect(listener.local_endpoint())), ours(listener.accept()) {}
  tcp_listener listener{endpoint::loopback(0)};
  tcp_stream peer;
  tcp_stream ours;
};

}  // namespace

TEST_CASE("a peer's hang-up ends the work that is done for it", "[net]") {
  run([] {
    const auto serve = [](auto hang_up) {
      connection made;
      bool undone = false;
      auto working = spin([&] {
        return move_on_when_closed(made.ours, [&] {
          const testing::at_end note([&] { undone = true; });
          sleep();
        });
      });
      made.peer.write_all(std::string_view("pipelined"));
      sleep_for(2ms);
      CHECK(working.state() == fiber_state::waiting);
      hang_up(made.peer);
      CHECK_FALSE(working.await());
      CHECK(undone);
      return std::move(made.ours);
    };
    tcp_stream kept = serve([](tcp_stream& peer) { peer.close(); });
    CHECK(testing::read_to_end(kept) == "pipelined");
    serve([](tcp_stream& peer) { peer.shutdown(SHUT_WR); });
    serve([](tcp_stream& peer) {
      testing::reset_when_closed(peer);
      peer.close();
    });
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    auto working = spin([&] { return move_on_when_closed(near, [] { sleep(); }); });
    sleep_for(1ms);
    far.close();
    CHECK_FALSE(working.await());
  });
}

TEST_CASE("work for a peer that stays ends as it would alone", "[net]") {
  run([] {
    connection made;
    CHECK(move_on_when_closed(made.ours, [] { return 7; }) == std::optional(7));
    CHECK(move_on_when_closed(made.ours, [] { sleep_for(1ms); }));
    CHECK_THROWS_AS(move_on_when_closed(made.ours, []() -> int { throw testing::oops(); }),
                    testing::oops);
    CHECK_FALSE(move_on_after(1ms, [&] { move_on_when_closed(made.ours, [] { sleep(); }); }));
    // The work may close the stream, and goes on.
    CHECK(move_on_when_closed(made.ours, [&] {
            sleep_for(1ms);
            made.ours.close();
            sleep_for(1ms);
            return 8;
          }) == std::optional(8));
    bool called = false;
    CHECK(error_of([&] { move_on_when_closed(made.ours, [&] { called = true; }); }) ==
          std::errc::bad_file_descriptor);
    CHECK_FALSE(called);
  });
}

TEST_CASE("a peer that has gone before ends the work at its first switchpoint", "[net]") {
  run([] {
    connection made;
    made.peer.close();
    int steps = 0;
    CHECK_FALSE(move_on_when_closed(made.ours, [&] {
      ++steps;
      sleep_for(1h);
      ++steps;
    }));
    CHECK(steps == 1);
  });
}

TEST_CASE("the number of a stream that the work closes may be another stream's", "[net]") {
  run([] {
    auto first = net::stream_pair();
    CHECK(move_on_when_closed(first.first, [&] {
      const int number = first.first.native_handle();
      first.first.close();
      auto second = net::stream_pair();
      CHECK(second.first.native_handle() == number);
      snooze();
      second.second.close();
      sleep_for(2ms);
    }));
  });
}

TEST_CASE("a name is listened on at all its addresses, with one port", "[net]") {
  run([] {
    std::vector<tcp_listener> all = tcp_listener::on_all_addresses("localhost", 0);
    REQUIRE(!all.empty());
    const std::uint16_t port = all.front().local_endpoint().port();
    CHECK(port != 0);
    group servers;
    for (tcp_listener& each : all) {
      CHECK(each.local_endpoint().port() == port);
      servers.spin([&each] { each.serve(testing::echo); });
      tcp_stream peer = tcp_stream::connect(each.local_endpoint());
      CHECK(testing::echoes(peer, "hello"));
    }
    CHECK(error_of([&] { tcp_listener::on_all_addresses("localhost", port); }) ==
          std::errc::address_in_use);
    CHECK(error_of([&] { tcp_listener::on_all_addresses("192.0.2.1", 0); }) ==
          std::errc::address_not_available);
    CHECK_THROWS_AS(tcp_listener::on_all_addresses("localhost", 0, {.backlog = 0}),
                    std::invalid_argument);
    servers.cancel();
  });
}

namespace {

/// Calls `f`, which returns whether all is well, in a child with `socket` as its descriptor 3.
template <typename F>
bool in_child_with(const fd& socket, const char* count, F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = ::dup2(socket.get(), 3) == 3;
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    ::setenv("LISTEN_FDS", count, 1);
    good = good && f();
    ::_exit(good ? 0 : 1);
  }
  int how = -1;
  ::waitpid(child, &how, 0);
  return how == 0;
}

bool refuses_to_listen(const std::errc expected) {
  try {
    net::listen_fds();
  } catch (const std::system_error& error) {
    return error.code() == expected;
  } catch (const std::runtime_error&) {
    return expected == std::errc::invalid_argument;
  }
  return false;
}

}  // namespace

TEST_CASE("sockets of a supervisor are taken over once", "[net]") {
  tcp_listener made(endpoint::loopback(0));
  const endpoint where = made.local_endpoint();
  const fd socket = made.release();
  CHECK(net::listen_fds().empty());
  CHECK(in_child_with(socket, "1", [&] {
    std::vector<fd> sockets = net::listen_fds();
    if (sockets.size() != 1 || sockets[0].get() != 3) return false;
    if ((::fcntl(3, F_GETFD) & FD_CLOEXEC) == 0 || !net::listen_fds().empty()) return false;
    bool answered = false;
    run([&] {
      tcp_listener listener(std::move(sockets[0]));
      group server;
      server.spin([&] { listener.serve(testing::echo); });
      tcp_stream peer = tcp_stream::connect(where);
      answered = testing::echoes(peer, "hello");
      server.cancel();
    });
    return answered;
  }));
  CHECK(in_child_with(socket, "1", [] {
    ::setenv("LISTEN_PID", "1", 1);
    return net::listen_fds().empty();
  }));
  CHECK(in_child_with(socket, "0", [] { return net::listen_fds().empty(); }));
  for (const char* wrong : {"", "many", "-1", "1 ", "99999999999", "2147483647"}) {
    CHECK(in_child_with(socket, wrong,
                        [] { return refuses_to_listen(std::errc::invalid_argument); }));
  }
  CHECK(in_child_with(socket, "1", [] {
    ::close(3);
    return refuses_to_listen(std::errc::bad_file_descriptor);
  }));
}
