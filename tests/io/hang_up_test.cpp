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
  connection() : peer(tcp_stream::connect(listener.local_endpoint())), server(listener.accept()) {}
  tcp_listener listener{endpoint::loopback(0)};
  tcp_stream peer;
  tcp_stream server;
};

}  // namespace

TEST_CASE("move_on_when_closed() ends the work when the peer hangs up", "[net]") {
  run([] {
    const auto serve = [](auto hang_up) {
      connection pair;
      bool undone = false;
      auto worker = spin([&] {
        return move_on_when_closed(pair.server, [&] {
          const testing::at_end note([&] { undone = true; });
          sleep();
        });
      });
      pair.peer.write_all(std::string_view("pipelined"));
      sleep_for(2ms);
      CHECK(worker.state() == fiber_state::waiting);
      hang_up(pair.peer);
      CHECK_FALSE(worker.await());
      CHECK(undone);
      return std::move(pair.server);
    };
    tcp_stream server_end = serve([](tcp_stream& peer) { peer.close(); });
    CHECK(testing::read_to_end(server_end) == "pipelined");
    serve([](tcp_stream& peer) { peer.shutdown(SHUT_WR); });
    serve([](tcp_stream& peer) {
      testing::reset_when_closed(peer);
      peer.close();
    });
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    auto worker = spin([&] { return move_on_when_closed(stream, [] { sleep(); }); });
    sleep_for(1ms);
    peer.close();
    CHECK_FALSE(worker.await());
  });
}

TEST_CASE("move_on_when_closed() returns the result of the work while the peer stays", "[net]") {
  run([] {
    connection pair;
    CHECK(move_on_when_closed(pair.server, [] { return 7; }) == std::optional(7));
    CHECK(move_on_when_closed(pair.server, [] { sleep_for(1ms); }));
    CHECK_THROWS_AS(move_on_when_closed(pair.server, []() -> int { throw testing::oops(); }),
                    testing::oops);
    CHECK_FALSE(move_on_after(1ms, [&] { move_on_when_closed(pair.server, [] { sleep(); }); }));
    // The work may close the stream, and goes on.
    CHECK(move_on_when_closed(pair.server, [&] {
            sleep_for(1ms);
            pair.server.close();
            sleep_for(1ms);
            return 8;
          }) == std::optional(8));
    bool called = false;
    CHECK(error_of([&] { move_on_when_closed(pair.server, [&] { called = true; }); }) ==
          std::errc::bad_file_descriptor);
    CHECK_FALSE(called);
  });
}

TEST_CASE("move_on_when_closed() ends the work at its first switchpoint if the peer has gone",
          "[net]") {
  run([] {
    connection pair;
    pair.peer.close();
    int steps = 0;
    CHECK_FALSE(move_on_when_closed(pair.server, [&] {
      ++steps;
      sleep_for(1h);
      ++steps;
    }));
    CHECK(steps == 1);
  });
}

TEST_CASE("move_on_when_closed() does not follow the number of a stream that the work closes",
          "[net]") {
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

TEST_CASE("tcp_listener::on_all_addresses() listens on all addresses of a name with one port",
          "[net]") {
  run([] {
    std::vector<tcp_listener> listeners = tcp_listener::on_all_addresses("localhost", 0);
    REQUIRE(!listeners.empty());
    const std::uint16_t port = listeners.front().local_endpoint().port();
    CHECK(port != 0);
    group servers;
    for (tcp_listener& listener : listeners) {
      CHECK(listener.local_endpoint().port() == port);
      servers.spin([&listener] { listener.serve(testing::echo); });
      tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
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
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

bool refuses_to_listen(const std::errc code) {
  try {
    net::listen_fds();
  } catch (const std::system_error& error) {
    return error.code() == code;
  } catch (const std::runtime_error&) {
    return code == std::errc::invalid_argument;
  }
  return false;
}

}  // namespace

TEST_CASE("net::listen_fds() takes over the sockets of a supervisor, once", "[net]") {
  tcp_listener opener(endpoint::loopback(0));
  const endpoint address = opener.local_endpoint();
  const fd socket = opener.release();
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
      tcp_stream peer = tcp_stream::connect(address);
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
