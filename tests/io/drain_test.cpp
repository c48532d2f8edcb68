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

TEST_CASE("serve_options::drain lets the handlers finish, and accepts no more connections",
          "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    std::stop_source stop;
    auto server = spin([&] {
      return listener.serve({.drain = stop.get_token()}, [](tcp_stream peer) {
        const std::string text = read_text(peer);
        sleep_for(20ms);
        peer.write_all(bytes_of(text));
      });
    });
    tcp_stream peer = tcp_stream::connect(address);
    peer.write_all(bytes_of("request"));
    sleep_for(5ms);
    stop.request_stop();
    CHECK(read_to_end(peer) == "request");
    CHECK(server.await() == 0);
    CHECK(listener.native_handle() == -1);
    CHECK(error_of([&] { tcp_stream::connect(address); }) == std::errc::connection_refused);
  });
}

TEST_CASE("serve_options::drain still serves the connections that have come already", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::vector<tcp_stream> peers;
    for (int i = 0; i < 5; ++i) peers.push_back(tcp_stream::connect(listener.local_endpoint()));
    std::stop_source stop;
    stop.request_stop();
    auto server = spin([&] { return listener.serve({.drain = stop.get_token()}, echo); });
    for (tcp_stream& peer : peers) {
      CHECK(echoes(peer, "come"));
      peer.close();
    }
    CHECK(server.await() == 0);
  });
}

TEST_CASE("serve_options::grace limits a drain: what takes longer is cancelled and counted",
          "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    int undone = 0;
    auto server = spin([&] {
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
    const auto start = clock::now();
    stop.request_stop();
    CHECK(server.await() == 2);
    CHECK(clock::now() - start >= 30ms);
    CHECK(undone == 3);
    CHECK(read_to_end(peers.back()).empty());
  });
}

TEST_CASE("serve_options::drain ends at once if the handlers watch the token", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    auto server = spin([&] {
      return listener.serve({.drain = stop.get_token(), .grace = 1h}, [&](tcp_stream peer) {
        move_on_when_stopped(stop.get_token(), [&] { echo(std::move(peer)); });
      });
    });
    tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(peer, "hello"));
    stop.request_stop();
    CHECK(server.await() == 0);
  });
}

TEST_CASE("tcp_listener::serve() throws if it is cancelled during the grace", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    auto server =
        spin([&] { return listener.serve({.drain = stop.get_token(), .grace = 1h}, echo); });
    tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(peer, "hello"));
    stop.request_stop();
    sleep_for(5ms);
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
    CHECK(read_to_end(peer).empty());
  });
}

TEST_CASE("serve_options::limit bounds the number of open connections", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    int open = 0;
    int peak = 0;
    auto server = spin([&] {
      return listener.serve({.drain = stop.get_token(), .limit = 2}, [&](tcp_stream peer) {
        peak = std::max(peak, ++open);
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
    CHECK(peak == 2);

    // A full server that drains does not wait for a place.
    tcp_stream first = tcp_stream::connect(listener.local_endpoint());
    tcp_stream second = tcp_stream::connect(listener.local_endpoint());
    tcp_stream third = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(second, "hello"));
    stop.request_stop();
    sleep_for(5ms);
    first.close();
    second.close();
    CHECK(server.await() == 0);
  });
}

TEST_CASE("serve_options::name begins the name of a connection's fiber, before its peer", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::string name;
    group servers;
    servers.spin([&] {
      listener.serve({.name = "guest"}, [&](const tcp_stream&) { name = current().name(); });
    });
    tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
    CHECK(read_to_end(peer).empty());
    CHECK(name == "guest " + peer.local_endpoint().to_string());
    const testing::scratch_directory directory;
    const std::string path = directory.name() + "/socket";
    net::unix_listener local(endpoint::unix_path(path));
    servers.spin([&] { local.serve([&](const net::unix_stream&) { name = current().name(); }); });
    auto nameless = net::unix_stream::connect(local.local_endpoint());
    std::byte end[1];
    CHECK(nameless.read(end) == 0);
    CHECK(name == "connection");
    servers.cancel();
  });
}

TEST_CASE("unix_listener::serve() drains, and removes its path", "[net]") {
  run([] {
    const testing::scratch_directory directory;
    const std::string path = directory.name() + "/socket";
    net::unix_listener listener(endpoint::unix_path(path));
    std::stop_source stop;
    auto server = spin([&] {
      return listener.serve({.drain = stop.get_token()}, [](net::unix_stream peer) {
        std::byte bytes[7];
        io::read_exactly(peer.native_handle(), bytes);
        peer.write_all(bytes);
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
    CHECK(server.await() == 0);
    CHECK(::access(path.c_str(), F_OK) != 0);
  });
}

TEST_CASE("tcp_listener::serve() reports exhausted descriptors once, however long that lasts",
          "[net]") {
  options settings;
  std::vector<std::string> notices;
  settings.on_notice = [&](std::string_view notice) { notices.emplace_back(notice); };
  run(settings, [&] {
    tcp_listener listener(endpoint::loopback(0));
    group server;
    server.spin([&] { listener.serve(echo); });
    for (int round = 0; round < 2; ++round) {
      fd early = testing::make_tcp_socket();
      const endpoint address = listener.local_endpoint();
      {
        const lower_limit few(RLIMIT_NOFILE, 3);
        io::connect(early.get(), address.address(), address.length());
        sleep_for(10ms);
      }
      tcp_stream late(std::move(early));
      CHECK(echoes(late, "late"));
    }
    server.cancel();
  });
  CHECK(notices.size() == 1);
}

TEST_CASE("listen_options are the socket's options", "[net]") {
  run([] {
    const tcp_listener alone(endpoint::loopback(0));
    const endpoint address = alone.local_endpoint();
    const net::listen_options sharing{.reuse_port = true};
    CHECK(error_of([&] { tcp_listener second(address, sharing); }) == std::errc::address_in_use);
    const tcp_listener shared(endpoint::loopback(0), sharing);
    const tcp_listener second(shared.local_endpoint(), sharing);
    CHECK(second.local_endpoint() == shared.local_endpoint());

    const auto option = [](const tcp_listener& listener, int level, int name) {
      int value = -1;
      socklen_t size = sizeof value;
      REQUIRE(::getsockopt(listener.native_handle(), level, name, &value, &size) == 0);
      return value;
    };
    CHECK(option(alone, SOL_SOCKET, SO_REUSEADDR) == 1);
    const tcp_listener strict(endpoint::loopback(0), {.reuse_address = false});
    CHECK(option(strict, SOL_SOCKET, SO_REUSEADDR) == 0);
    for (const bool only : {false, true}) {
      std::optional<tcp_listener> listener;
      std::error_code refused;
      try {
        listener.emplace(endpoint::parse("[::]:0"), net::listen_options{.v6_only = only});
      } catch (const std::system_error& error) {
        refused = error.code();
      }
      if (refused == std::errc::address_family_not_supported) continue;  // a host without IPv6
      CHECK(option(*listener, IPPROTO_IPV6, IPV6_V6ONLY) == (only ? 1 : 0));
    }
  });
}

TEST_CASE("tcp_listener::serve() on several threads refuses a port in use, unless it is shared",
          "[net]") {
  const endpoint address = free_port();
  run([&] {
    thread_pool pool(2);
    std::stop_source stop;
    const net::serve_options drained{.drain = stop.get_token()};
    auto first = spin([&] { return tcp_listener::serve(pool, address, drained, echo); });
    std::vector<tcp_stream> peers;
    peers.push_back(testing::connect_when_served(address));
    for (int i = 0; i < 20; ++i) peers.push_back(tcp_stream::connect(address));
    for (tcp_stream& peer : peers) CHECK(echoes(peer, "hello"));
    CHECK(error_of([&] { tcp_listener::serve(pool, address, drained, echo); }) ==
          std::errc::address_in_use);
    auto second = spin([&] {
      return tcp_listener::serve(pool, address, {.drain = stop.get_token(), .share_port = true},
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

TEST_CASE("tcp_listener::serve() on several threads counts what it cuts, and has one limit",
          "[net]") {
  const endpoint address = free_port();
  run([&] {
    thread_pool pool(3);
    std::stop_source stop;
    std::atomic<int> open{0};
    std::atomic<int> peak{0};
    std::atomic<std::size_t> endings{0};
    auto server = spin([&] {
      return tcp_listener::serve(
          pool, address, {.drain = stop.get_token(), .grace = 20ms, .limit = 4},
          [&](tcp_stream peer) {
            const int count = ++open;
            for (int maximum = peak;
                 maximum < count && !peak.compare_exchange_weak(maximum, count);) {
            }
            const testing::at_end guard([&] {
              --open;
              ++endings;
            });
            echo(std::move(peer));
          });
    });
    std::vector<tcp_stream> peers;
    peers.push_back(testing::connect_when_served(address));
    for (int i = 0; i < 15; ++i) peers.push_back(tcp_stream::connect(address));
    while (open < 4) sleep_for(1ms);
    sleep_for(10ms);
    stop.request_stop();
    CHECK(server.await() == endings);
    CHECK(endings >=
          4);  // more where time is virtual: a thread is over before another has begun to
    CHECK(peak == 4);
  });
}

TEST_CASE("serve_options::drain serves a connection that is accepted when the stop comes",
          "[net]") {
  run([] {
    for (int round = 0; round < 20; ++round) {
      tcp_listener listener(endpoint::loopback(0));
      std::stop_source stop;
      auto server = spin([&] {
        return listener.serve({.drain = stop.get_token(), .limit = round % 2 == 0 ? 0U : 3U},
                              [](tcp_stream peer) { peer.write_all("hello"); });
      });
      until_waiting(server);
      const endpoint address = listener.local_endpoint();
      fd socket = testing::make_tcp_socket();
      REQUIRE(::connect(socket.get(), address.address(), address.length()) == 0);
      while (server.state() == fiber_state::waiting) snooze();
      stop.request_stop();
      tcp_stream peer(std::move(socket));
      CHECK(read_to_end(peer) == "hello");
      CHECK(server.await() == 0);
    }
  });
}

TEST_CASE("serve_options::grace limits a drain when descriptors have run out", "[net]") {
  options settings;
  settings.on_notice = [](std::string_view) {};
  run(settings, [] {
    tcp_listener listener(endpoint::loopback(0));
    std::stop_source stop;
    auto server =
        spin([&] { return listener.serve({.drain = stop.get_token(), .grace = 20ms}, echo); });
    tcp_stream early = tcp_stream::connect(listener.local_endpoint());
    CHECK(echoes(early, "early"));
    const endpoint address = listener.local_endpoint();
    fd late = testing::make_tcp_socket();
    const lower_limit few(RLIMIT_NOFILE, 3);
    io::connect(late.get(), address.address(), address.length());
    sleep_for(5ms);
    stop.request_stop();
    // A ring's accept that was under way goes by the limit before.
    CHECK(move_on_after(5s, [&] { CHECK(server.await() >= 1); }));
  });
}
