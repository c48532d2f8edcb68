// SPDX-License-Identifier: MIT
// The hosts and the network of a simulated world: ordinary programs with sockets run in it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <motet/testing.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "testing/simulations.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::direction;
using motet::testing::host;
using motet::testing::order;
using motet::testing::outcome;
using motet::testing::world;
using ::testing::passes;
using ::testing::require;

constexpr std::uint16_t port = 7'000;

/// Returns: the failure, which there must be with some seed.
std::string failure_of(const std::function<void(world&)>& function, std::uint64_t seeds = 40) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const outcome result = motet::testing::run({.seed = seed}, function);
    if (!result.passed) return result.failure;
  }
  return {};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void serve_echo() {
  net::tcp_listener listener(net::endpoint::any(port));
  listener.serve([](net::tcp_stream peer) {
    std::array<std::byte, 1024> buffer;
    while (const std::size_t size = peer.read(buffer))
      peer.write_all(std::span(buffer).first(size));
  });
}

/// Returns: the echo.
std::string ask(net::tcp_stream& stream, const std::string& text) {
  stream.write_all(text);
  std::string answer(text.size(), '\0');
  std::size_t size = 0;
  while (size < answer.size()) {
    const std::size_t part = stream.read(std::as_writable_bytes(std::span(answer).subspan(size)));
    if (part == 0) throw std::runtime_error("the server has closed the connection");
    size += part;
  }
  return answer;
}

/// Until the server listens.
net::tcp_stream connect_at_last(const std::string& name) {
  for (;;) {
    try {
      return net::tcp_stream::connect(name, port);
    } catch (const std::system_error&) {
      sleep_for(10ms);
    }
  }
}

}  // namespace

TEST_CASE("host: a client reaches a server by its name and by its address") {
  passes([](world& in) {
    const host server = in.add("server", serve_echo);
    require(server.name() == "server" && server.running(), "the host runs");
    net::tcp_stream by_name = connect_at_last("server");
    require(ask(by_name, "hello") == "hello", "the echo of a name");
    net::tcp_stream by_address =
        net::tcp_stream::connect(net::endpoint::parse(server.address() + ":7000"));
    require(ask(by_address, std::string(5'000, 'x')) == std::string(5'000, 'x'), "a long echo");
    require(by_address.peer_endpoint().to_string() == server.address() + ":7000",
            "the peer's name");
    require(by_address.local_endpoint().to_string().starts_with("10.0.0.1:"), "the own name");
  });
}

TEST_CASE("network: bytes take the latency, and the bandwidth's time") {
  passes([](world& in) {
    in.net().shortest_latency = in.net().longest_latency = 10ms;
    in.net().bytes_per_second = 1'000'000;
    in.net().short_transfers = false;
    const host server = in.add("server", serve_echo);
    net::tcp_stream stream = connect_at_last("server");
    const clock::time_point begin = clock::now();
    ask(stream, "x");
    const clock::duration ping = clock::now() - begin;
    require(ping >= 20ms && ping < 21ms, "there and back again");
    const clock::time_point second = clock::now();
    ask(stream, std::string(50'000, 'x'));  // 50 ms each way, in parts
    const clock::duration transfer = clock::now() - second;
    require(transfer >= 70ms && transfer < 130ms, "the link has a rate");
  });
}

TEST_CASE("network: a stream keeps order in any parts, and waits for its reader") {
  passes([](world& in) {
    const host server = in.add("server", [] {
      net::tcp_listener listener(net::endpoint::any(port));
      net::tcp_stream peer = listener.accept();
      sleep_for(1s);
      std::string all;
      std::array<std::byte, 9'000> buffer;
      while (const std::size_t size = peer.read(buffer))
        all.append(reinterpret_cast<const char*>(buffer.data()), size);
      require(all.size() == 200'000, "everything has come");
      for (std::size_t i = 0; i < all.size(); ++i)
        require(all[i] == static_cast<char>('a' + i % 26), "in order");
      peer.write_all("done");
    });
    net::tcp_stream stream = connect_at_last("server");
    std::string text(200'000, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
    const clock::time_point begin = clock::now();
    stream.write_all(text);
    require(clock::now() - begin > 900ms, "the window is full until the server reads");
    stream.shutdown(SHUT_WR);
    std::array<std::byte, 10> answer;
    require(stream.read(answer) > 0, "the answer after the end");
  });
}

TEST_CASE("network: without a listener, an address or a live host, connect fails") {
  passes([](world& in) {
    host server = in.add("server", [] { sleep(); });
    const auto error_of = [](const char* address) {
      std::error_code error;
      net::tcp_stream::connect(net::endpoint::parse(address), error);
      return error.value();
    };
    require(error_of("10.0.0.2:7000") == ECONNREFUSED, "nobody listens");
    const clock::time_point begin = clock::now();
    require(error_of("10.0.0.77:7000") == EHOSTUNREACH, "no such host");
    require(clock::now() - begin >= 3s, "the neighbour is asked three times");
    in.crash(server);
    require(!server.running(), "it has crashed");
    require(error_of("10.0.0.2:7000") == EHOSTUNREACH, "the host is down");
    std::error_code error;
    try {
      net::tcp_stream::connect("unknown", port);
    } catch (const std::system_error& failure) {
      error = failure.code();
    }
    require(std::string_view(error.category().name()) == "getaddrinfo", "no such name");
  });
}

TEST_CASE("network: a full backlog delays a connection") {
  passes([](world& in) {
    const host server = in.add("server", [] {
      net::tcp_listener listener(net::endpoint::any(port), {.backlog = 1});
      sleep_for(10s);
      for (int i = 0; i < 3; ++i) listener.accept();
    });
    in.until_idle();
    group clients;
    for (int i = 0; i < 3; ++i) {
      clients.spin([] {
        net::tcp_stream stream = net::tcp_stream::connect("server", port);
        std::array<std::byte, 1> buffer;
        require(stream.read(buffer) == 0, "accepted, and closed");
      });
    }
    const clock::time_point begin = clock::now();
    clients.await_all();
    require(clock::now() - begin > 10s, "two had to try again");
  });
}

TEST_CASE("network: a partition holds a stream back until it is healed") {
  passes([](world& in) {
    host server = in.add("server", serve_echo);
    bool answered = false;
    const host client = in.add("client", [&] {
      net::tcp_stream stream = connect_at_last("server");
      require(ask(stream, "one") == "one", "before");
      sleep_for(1s);
      require(ask(stream, "two") == "two", "after");
      answered = true;
    });
    sleep_for(500ms);
    in.partition(client, server);
    sleep_for(60s);
    require(!answered, "nothing passes");
    in.heal();
    in.eventually([&] { return answered; }, 1s);
  });
}

TEST_CASE("network: a partition of one direction lets the other one through") {
  passes([](world& in) {
    std::string got;
    const host server = in.add("server", [&] {
      net::udp_socket socket(net::endpoint::any(port));
      std::array<std::byte, 100> buffer;
      for (;;) {
        const net::received_datagram datagram = socket.receive_from(buffer);
        got.append(reinterpret_cast<const char*>(buffer.data()), datagram.size);
        socket.send_to(std::span(buffer).first(datagram.size), datagram.from);
      }
    });
    std::string echoed;
    const host client = in.add("client", [&] {
      net::udp_socket socket = net::udp_socket::connect(dns::resolve("server", port).front());
      for (const char c : {'a', 'b'}) {
        socket.send(std::as_bytes(std::span(&c, 1)));
        std::array<std::byte, 1> buffer;
        move_on_after(1s, [&] {
          socket.receive_from(buffer);
          echoed += static_cast<char>(buffer[0]);
        });
        sleep_for(5s);
      }
    });
    sleep_for(3s);
    in.partition(server, client, direction::one_way);
    sleep_for(10s);
    require(got == "ab", "both came");
    require(echoed == "a", "one answer did not");
  });
}

TEST_CASE("network: datagrams are lost, come twice and overtake each other") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::string got;
    const outcome result = motet::testing::run({.seed = seed}, [&](world& in) {
      in.net().losses = 0.2;
      in.net().duplicates = 0.2;
      const host server = in.add("server", [&] {
        net::udp_socket socket(net::endpoint::any(port));
        std::array<std::byte, 10> buffer;
        for (;;) {
          socket.receive_from(buffer);
          got += static_cast<char>(buffer[0]);
        }
      });
      in.until_idle();
      net::udp_socket socket(net::endpoint::any(0));
      for (const char c : {'a', 'b', 'c'})
        socket.send_to(std::as_bytes(std::span(&c, 1)), dns::resolve("server", port).front());
      sleep_for(1s);
    });
    INFO(result.failure);
    REQUIRE(result.passed);
    seen.insert(got);
  }
  CHECK(seen.count("abc") == 1);
  CHECK(std::any_of(seen.begin(), seen.end(), [](const auto& s) { return s.size() < 3; }));
  CHECK(std::any_of(seen.begin(), seen.end(), [](const auto& s) { return s.size() > 3; }));
  CHECK(std::any_of(seen.begin(), seen.end(),
                    [](const auto& s) { return !std::is_sorted(s.begin(), s.end()); }));
}

TEST_CASE("world: a crash resets the peers, or leaves them without news") {
  std::set<int> errors;
  passes([&](world& in) {
    host server = in.add("server", serve_echo);
    net::tcp_stream stream = connect_at_last("server");
    ask(stream, "x");
    in.crash(server);
    std::error_code error;
    std::array<std::byte, 1> buffer;
    move_on_after(10s, [&] { stream.read(buffer, error); });
    errors.insert(error.value());
    in.restart(server);
    if (error == std::errc::operation_canceled) {  // the new program does not know the connection
      stream.write_all("y");
      stream.read(buffer, error);
      require(error == std::errc::connection_reset, "it is reset");
    }
    net::tcp_stream second = connect_at_last("server");
    require(ask(second, "again") == "again", "the host serves again");
  });
  CHECK(errors == std::set<int>{ECANCELED, ECONNRESET});
}

TEST_CASE("world: what a crashed host does while it unwinds has no effect") {
  passes([](world& in) {
    std::string got;
    const host server = in.add("server", [&] {
      net::udp_socket socket(net::endpoint::any(port));
      std::array<std::byte, 100> buffer;
      for (;;) {
        const std::size_t size = socket.receive_from(buffer).size;
        got.append(reinterpret_cast<const char*>(buffer.data()), size);
      }
    });
    host client = in.add("client", [] {
      net::udp_socket socket = net::udp_socket::connect(dns::resolve("server", port).front());
      struct farewell {
        net::udp_socket& socket;
        ~farewell() {
          std::error_code error;
          const char word = 'f';
          socket.send(std::as_bytes(std::span(&word, 1)), error);
          try {
            net::udp_socket other(net::endpoint::any(0));
            got_one = true;
          } catch (const std::system_error& failure) {
            require(failure.code() == std::errc::network_down, "no new socket");
          }
        }
        bool got_one = false;
      } guard{socket};
      const char word = 'h';
      for (;;) {
        socket.send(std::as_bytes(std::span(&word, 1)));
        sleep_for(1s);
      }
    });
    sleep_for(2500ms);
    in.crash(client);
    sleep_for(1s);
    require(got == "hhh", "no farewell");
  });
}

TEST_CASE("network: a reset is seen at both ends") {
  std::size_t resets = 0;
  passes([&](world& in) {
    const host server = in.add("server", serve_echo);
    net::tcp_stream stream = connect_at_last("server");
    in.net().resets = 0.3;
    try {
      for (int i = 0; i < 5; ++i) ask(stream, "hello");
    } catch (const std::system_error&) {
      ++resets;
    } catch (const std::runtime_error&) {  // the server's handler has left
      ++resets;
    }
  });
  CHECK(resets > 20);
}

TEST_CASE("network: a machine has a limit of sockets") {
  passes([](world& in) {
    in.net().descriptors = 3;
    std::vector<net::udp_socket> sockets;
    int error = 0;
    try {
      for (int i = 0; i < 4; ++i) sockets.emplace_back(net::endpoint::any(0));
    } catch (const std::system_error& failure) {
      error = failure.code().value();
    }
    require(error == EMFILE && sockets.size() == 3, "the fourth one");
    sockets.clear();
    const net::udp_socket next(net::endpoint::any(0));
  });
}

TEST_CASE("network: names of sockets are refused as the kernel refuses them") {
  passes([](world&) {
    const net::tcp_listener listener(net::endpoint::any(port));
    const auto error_of = [](const net::endpoint& address) {
      try {
        const net::tcp_listener other(address);
      } catch (const std::system_error& failure) {
        return failure.code().value();
      }
      return 0;
    };
    require(error_of(net::endpoint::any(port)) == EADDRINUSE, "twice");
    require(error_of(net::endpoint::parse("10.0.0.9:1")) == EADDRNOTAVAIL, "another host's");
    require(error_of(net::endpoint::parse("[::1]:1")) == EAFNOSUPPORT, "IPv6");
    require(listener.local_endpoint().port() == port, "the own name");
    require(net::tcp_listener(net::endpoint::loopback(0)).local_endpoint().port() >= 32'768,
            "a port of the network's choice");
  });
}

TEST_CASE("host: a socket that is left open fails the simulation") {
  static std::vector<net::udp_socket> leaked;
  CHECK(contains(failure_of([](world& in) {
                   const host server =
                       in.add("server", [] { leaked.emplace_back(net::endpoint::any(port)); });
                   sleep_for(1s);
                 }),
                 "the host server left a socket open, made by the "
                 "fiber of "));
  leaked.clear();
  CHECK(contains(failure_of([](world&) { leaked.emplace_back(net::endpoint::any(port)); }),
                 "the function left a socket open"));
  leaked.clear();
}

TEST_CASE("host: its exception fails the simulation, and misuse is refused") {
  CHECK(contains(failure_of([](world& in) {
                   const host server =
                       in.add("server", [] { throw std::runtime_error("no disk"); });
                   sleep_for(1s);
                 }),
                 "the host server threw: no disk"));
  passes(
      [](world& in) {
        host server = in.add("server", [] { sleep(); });
        const auto refused = [](const std::function<void()>& f) {
          try {
            f();
          } catch (const std::logic_error&) {
            return true;
          }
          return false;
        };
        require(refused([&] { in.restart(server); }), "restart while it runs");
        require(refused([&] { const host other = in.add("server", [] {}); }), "two with a name");
        require(refused([&] { const host other = in.add("", [] {}); }), "none");
        in.crash(server);
        in.crash(server);  // once is enough
        in.restart(server);
        require(server.running(), "again");
      },
      4);
}

TEST_CASE("network: a run is the same for a seed, and differs between seeds") {
  const auto run = [](std::uint64_t seed) {
    return motet::testing::run({.seed = seed}, [](world& in) {
      const host server = in.add("server", serve_echo);
      net::tcp_stream stream = connect_at_last("server");
      ask(stream, "some text");
    });
  };
  std::set<std::string> logs;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const outcome first = run(seed);
    const outcome second = run(seed);
    REQUIRE(first.passed);
    CHECK(first.log == second.log);
    CHECK(first.span == second.span);
    logs.insert(first.log);
  }
  CHECK(logs.size() == 20);
}

TEST_CASE("testing::world: cancellation ends loops of crash() and restart()") {
  passes(
      [](world& in) {
        host server = in.add("server", serve_echo);
        host crashed = in.add("crashed", [] { sleep(); });
        in.crash(crashed);
        const std::function<void()> loops[] = {[&] { in.crash(crashed); },
                                               [&] {
                                                 in.restart(server);
                                                 in.crash(server);
                                               }};
        in.crash(server);
        for (const auto& call : loops) {
          fiber<void> loop = spin([&] {
            for (;;) call();
          });
          sleep_for(10ms);
          loop.cancel();
          bool ended = false;
          try {
            loop.await();
          } catch (const fiber_cancelled&) {
            ended = true;
          }
          require(ended, "the loop has ended");
        }
      },
      4);
}
