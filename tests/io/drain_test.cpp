// SPDX-License-Identifier: MIT
// Servers that end well: what they still take and finish, how long that may last, and how many
// connections are open at a time.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "io/servers.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;
using testing::bytes_of;
using testing::echo;
using testing::echoes;
using testing::error_of;
using testing::free_port;
using testing::lower_limit;
using testing::read_text;
using testing::read_to_end;
using testing::until_waiting;

TEST_CASE("a server that drains lets its handlers finish, and takes no more", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint where = listener.local_endpoint();
    std::stop_source stop;
    auto serving = spin([&] {
      return listener.serve({.drain = stop.get_token()}, [](tcp_stream peer) {
        const std::string asked = read_text(peer);
        sleep_for(20ms);
        peer.write_all(bytes_of(asked));
      });
    });
    tcp_stream peer = tcp_stream::connect(where);
    peer.write_all(bytes_of("request"));
    sleep_for(5ms);
    stop.request_stop();
    CHECK(read_to_end(peer) == "request");
    CHECK(serving.await() == 0);
    CHECK(listener.native_handle() == -1);
    CHECK(error_of([&] { tcp_stream::connect(where); }) == std::errc::connection_refused);
  });
}

TEST_CASE("a server that drains takes the connections that have come already", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::vector<tcp_stream> peers;
    for (int i = 0; i < 5; ++i) peers.push_back(tcp_stream::connect(listener.local_endpoint()));
    std::stop_source stop;
    stop.request_stop();
    auto serving = spin([&] { return listener.serve({.drain = stop.get_token()}, echo); });
    for (tcp_stream& each : peers) {
      CHECK(echoes(each, "come"));
      each.close();
    }
    CHECK(serving.await() == 0);
  });
}

TEST_CASE("what takes longer than the grace is cancelled and counted", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    int undone = 0;
    auto serving = spin([&] {
      return listener.serve({.drain = stop.get_token(), .grace = 30ms}, [&](tcp_stream peer) {
        const testing::at_end count([&] { ++undone; });
        echo(std::move(peer));
      });
    });
    std::vector<tcp_stream> peers;
    for (int i = 0; i < 3; ++i) {
      peers.push_back(tcp_stream::connect(listener.local_endpoint()));
      CHECK(echoes(peers.back(), "hello"));
    }
    peers.front().close();
    snooze();
    const auto asked = clock::now();
    stop.request_stop();
    CHECK(serving.await() == 2);
    CHECK(clock::now() - asked >= 30ms);
    CHECK(undone == 3);
    CHECK(read_to_end(peers.back()).empty());
  });
}

TEST_CASE("handlers that look at the token end at once", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    auto serving = spin([&] {
      return listener.serve({.drain = stop.get_token(), .grace = 1h}, [&](tcp_stream peer) {
        move_on_when_stopped(stop.get_token(), [&] { echo(std::move(peer)); });
      });
    });
    tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(peer, "hello"));
    stop.request_stop();
    CHECK(serving.await() == 0);
  });
}

TEST_CASE("a cancel during the grace ends the server by an exception", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    auto serving =
        spin([&] { return listener.serve({.drain = stop.get_token(), .grace = 1h}, echo); });
    tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(peer, "hello"));
    stop.request_stop();
    sleep_for(5ms);
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
    CHECK(read_to_end(peer).empty());
  });
}

TEST_CASE("a server has no more connections open than its limit", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    int open = 0;
    int most = 0;
    auto serving = spin([&] {
      return listener.serve({.drain = stop.get_token(), .limit = 2}, [&](tcp_stream peer) {
        most = std::max(most, ++open);
        echo(std::move(peer));
        --open;
      });
    });
    std::vector<tcp_stream> peers;
    for (int i = 0; i < 5; ++i) peers.push_back(tcp_stream::connect(listener.local_endpoint()));
    while (!peers.empty()) {
      CHECK(echoes(peers.front(), "hello"));
      CHECK(open == static_cast<int>(std::min<std::size_t>(peers.size(), 2)));
      peers.erase(peers.begin());
      sleep_for(5ms);
    }
    CHECK(most == 2);

    // A full server that drains does not wait for a place.
    tcp_stream first = tcp_stream::connect(listener.local_endpoint());
    tcp_stream second = tcp_stream::connect(listener.local_endpoint());
    tcp_stream third = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(second, "hello"));
    stop.request_stop();
    sleep_for(5ms);
    first.close();
    second.close();
    CHECK(serving.await() == 0);
  });
}

TEST_CASE("a connection's fiber is named by its peer", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::string name;
    group both;
    both.spin([&] {
      listener.serve({.name = "guest"}, [&](const tcp_stream&) { name = current().name(); });
    });
    tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
    CHECK(read_to_end(peer).empty());
    CHECK(name == "guest " + peer.local_endpoint().to_string());
    const testing::scratch_directory in;
    const std::string path = in.name() + "/socket";
    net::unix_listener local(endpoint::unix_path(path));
    both.spin([&] { local.serve([&](const net::unix_stream&) { name = current().name(); }); });
    auto nameless = net::unix_stream::connect(local.local_endpoint());
    std::byte end[1];
    CHECK(nameless.read(end) == 0);
    CHECK(name == "connection");
    both.cancel();
  });
}

TEST_CASE("a Unix server drains, and takes its path away", "[net]") {
  run([] {
    const testing::scratch_directory in;
    const std::string path = in.name() + "/socket";
    net::unix_listener listener(endpoint::unix_path(path));
    std::stop_source stop;
    auto serving = spin([&] {
      return listener.serve({.drain = stop.get_token()}, [](net::unix_stream peer) {
        std::byte asked[7];
        io::read_exactly(peer.native_handle(), asked);
        peer.write_all(asked);
      });
    });
    auto peer = net::unix_stream::connect(listener.local_endpoint());
    snooze();
    stop.request_stop();
    snooze();
    peer.write_all(bytes_of("request"));
    std::byte answer[7];
    io::read_exactly(peer.native_handle(), answer);
    CHECK(testing::text_of(answer) == "request");
    CHECK(serving.await() == 0);
    CHECK(::access(path.c_str(), F_OK) != 0);
  });
}

TEST_CASE("exhaustion is told of once, however long it lasts", "[net]") {
  options chosen;
  std::vector<std::string> told;
  chosen.on_notice = [&](std::string_view notice) { told.emplace_back(notice); };
  run(chosen, [&] {
    tcp_listener listener(endpoint::loopback(0));
    group server;
    server.spin([&] { listener.serve(echo); });
    for (int round = 0; round < 2; ++round) {
      fd early = testing::make_tcp_socket();
      const endpoint where = listener.local_endpoint();
      {
        const lower_limit few(RLIMIT_NOFILE, 3);
        io::connect(early.get(), where.address(), where.length());
        sleep_for(10ms);
      }
      tcp_stream late(std::move(early));
      CHECK(echoes(late, "late"));
    }
    server.cancel();
  });
  CHECK(told.size() == 1);
}

TEST_CASE("a listener's options are the socket's", "[net]") {
  run([] {
    const tcp_listener alone(endpoint::loopback(0));
    const endpoint where = alone.local_endpoint();
    const net::listen_options sharing{.reuse_port = true};
    CHECK(error_of([&] { tcp_listener second(where, sharing); }) == std::errc::address_in_use);
    const tcp_listener shared(endpoint::loopback(0), sharing);
    const tcp_listener second(shared.local_endpoint(), sharing);
    CHECK(second.local_endpoint() == shared.local_endpoint());

    const auto option = [](const tcp_listener& listener, int level, int which) {
      int value = -1;
      socklen_t size = sizeof value;
      REQUIRE(::getsockopt(listener.native_handle(), level, which, &value, &size) == 0);
      return value;
    };
    CHECK(option(alone, SOL_SOCKET, SO_REUSEADDR) == 1);
    const tcp_listener strict(endpoint::loopback(0), {.reuse_address = false});
    CHECK(option(strict, SOL_SOCKET, SO_REUSEADDR) == 0);
    for (const bool only : {false, true}) {
      std::optional<tcp_listener> both;
      std::error_code refused;
      try {
        both.emplace(endpoint::parse("[::]:0"), net::listen_options{.v6_only = only});
      } catch (const std::system_error& error) {
        refused = error.code();
      }
      if (refused == std::errc::address_family_not_supported) continue;  // a host without IPv6
      CHECK(option(*both, IPPROTO_IPV6, IPV6_V6ONLY) == (only ? 1 : 0));
    }
  });
}

TEST_CASE("a server on several threads refuses a port that is served, unless it shares", "[net]") {
  const endpoint where = free_port();
  run([&] {
    thread_pool pool(2);
    std::stop_source stop;
    const net::serve_options drained{.drain = stop.get_token()};
    auto first = spin([&] { return tcp_listener::serve(pool, where, drained, echo); });
    std::vector<tcp_stream> peers;
    peers.push_back(testing::connect_when_served(where));
    for (int i = 0; i < 20; ++i) peers.push_back(tcp_stream::connect(where));
    for (tcp_stream& each : peers) CHECK(echoes(each, "hello"));
    CHECK(error_of([&] { tcp_listener::serve(pool, where, drained, echo); }) ==
          std::errc::address_in_use);
    auto second = spin([&] {
      return tcp_listener::serve(pool, where, {.drain = stop.get_token(), .share_port = true},
                                 echo);
    });
    sleep_for(20ms);
    CHECK(second.state() == fiber_state::waiting);
    peers.clear();
    stop.request_stop();
    // On sim the grace is over at once, while threads of the pool still notice the ends.
    CHECK((first.await() == 0 || testing::on_sim()));
    CHECK((second.await() == 0 || testing::on_sim()));
  });
}

TEST_CASE("a server on several threads counts what it cuts, and has one limit", "[net]") {
  const endpoint where = free_port();
  run([&] {
    thread_pool pool(3);
    std::stop_source stop;
    std::atomic<int> open{0};
    std::atomic<int> most{0};
    std::atomic<std::size_t> ended{0};
    auto serving = spin([&] {
      return tcp_listener::serve(
          pool, where, {.drain = stop.get_token(), .grace = 20ms, .limit = 4},
          [&](tcp_stream peer) {
            const int now = ++open;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
            }
            const testing::at_end left([&] {
              --open;
              ++ended;
            });
            echo(std::move(peer));
          });
    });
    std::vector<tcp_stream> peers;
    peers.push_back(testing::connect_when_served(where));
    for (int i = 0; i < 15; ++i) peers.push_back(tcp_stream::connect(where));
    while (open < 4) sleep_for(1ms);
    sleep_for(10ms);
    stop.request_stop();
    CHECK(serving.await() == ended);
    CHECK(ended >= 4);  // more where time is virtual: a thread is over before another has begun to
    CHECK(most == 4);
  });
}

TEST_CASE("a connection that is accepted when the stop comes is served", "[net]") {
  run([] {
    for (int round = 0; round < 20; ++round) {
      tcp_listener listener(endpoint::loopback(0));
      std::stop_source stop;
      auto serving = spin([&] {
        return listener.serve({.drain = stop.get_token(), .limit = round % 2 == 0 ? 0U : 3U},
                              [](tcp_stream peer) { peer.write_all("hello"); });
      });
      until_waiting(serving);
      const endpoint where = listener.local_endpoint();
      fd socket = testing::make_tcp_socket();
      REQUIRE(::connect(socket.get(), where.address(), where.length()) == 0);
      while (serving.state() == fiber_state::waiting) snooze();
      stop.request_stop();
      tcp_stream peer(std::move(socket));
      CHECK(read_to_end(peer) == "hello");
      CHECK(serving.await() == 0);
    }
  });
}

TEST_CASE("a drain is no longer than its grace when descriptors have run out", "[net]") {
  options chosen;
  chosen.on_notice = [](std::string_view) {};
  run(chosen, [] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    auto serving =
        spin([&] { return listener.serve({.drain = stop.get_token(), .grace = 20ms}, echo); });
    tcp_stream early = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(early, "early"));
    const endpoint where = listener.local_endpoint();
    fd late = testing::make_tcp_socket();
    const lower_limit few(RLIMIT_NOFILE, 3);
    io::connect(late.get(), where.address(), where.length());
    sleep_for(5ms);
    stop.request_stop();
    // A ring's accept that was under way goes by the limit before.
    CHECK(move_on_after(5s, [&] { CHECK(serving.await() >= 1); }));
  });
}
