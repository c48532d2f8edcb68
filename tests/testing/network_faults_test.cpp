// SPDX-License-Identifier: MIT
// Crashes, partitions and closed sockets at awkward moments of simulated hosts.
#include <poll.h>

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
using motet::testing::host;
using motet::testing::outcome;
using motet::testing::time_mode;
using motet::testing::world;
using ::testing::passes;
using ::testing::require;

constexpr std::uint16_t port = 7'000;

/// Accepts one connection, and keeps it for a day.
void accept_one() {
  net::tcp_listener listener(net::endpoint::any(port));
  const net::tcp_stream peer = listener.accept();
  sleep_for(24h);
}

/// Returns: the error of a read that has at most 10 s; 0 for the end, ECANCELED for silence.
int error_of_read(net::tcp_stream& stream) {
  std::error_code error;
  std::array<std::byte, 100> buffer;
  move_on_after(10s, [&] {
    while (stream.read(buffer, error) > 0) continue;
  });
  return error.value();
}

int error_of_write(net::tcp_stream& stream, std::string_view text) {
  std::error_code error;
  stream.write_all(std::as_bytes(std::span(text)), error);
  return error.value();
}

}  // namespace

TEST_CASE("host: fibers that its program has spun end before its sockets are counted") {
  passes([](world& in) {
    host server = in.add("server", [] {
      const fiber<void> worker = spin([] { accept_one(); });
      sleep_for(1s);
    });
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    sleep_for(2s);
    require(!server.running(), "it has ended by itself");
    in.restart(server);
    sleep_for(10ms);
    in.crash(server);
    in.restart(server);
  });
}

TEST_CASE("host: a fiber that fails as its host crashes fails nothing else") {
  passes([](world& in) {
    host client = in.add("client", [] {
      group workers;
      for (int i = 0; i < 3; ++i) {
        workers.spin([] {
          net::udp_socket socket(net::endpoint::any(0));
          const std::byte one{};
          for (;;) {
            socket.send_to({&one, 1}, net::endpoint::parse("10.0.0.1:9"));
            snooze();
          }
        });
      }
      workers.await_all();
    });
    for (int i = 0; i < 3; ++i) {
      for (std::uint32_t turns = in.random(5); turns > 0; --turns) snooze();
      in.crash(client);
      in.restart(client);
    }
  });
}

TEST_CASE("host: it may be crashed and started by several fibers at once") {
  passes([](world& in) {
    host server = in.add("server", [] { sleep(); });
    int refusals = 0;
    group tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.spin([&] {
        for (int round = 0; round < 3; ++round) {
          snooze();
          in.crash(server);
          try {
            in.restart(server);
          } catch (const std::logic_error&) {
            ++refusals;
          }
        }
      });
    }
    tasks.await_all();
    in.crash(server);
    in.restart(server);
    require(server.running(), "it runs in the end");
  });
}

TEST_CASE("world: a host that unwinds does not shut a connection down") {
  std::set<int> seen;
  passes([&](world& in) {
    host server = in.add("server", [] {
      net::tcp_listener listener(net::endpoint::any(port));
      net::tcp_stream peer = listener.accept();
      struct at_end {
        net::tcp_stream& peer;
        ~at_end() {
          std::error_code error;
          peer.shutdown(SHUT_WR, error);
        }
      } guard{peer};
      sleep();
    });
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    sleep_for(1s);
    in.crash(server);
    seen.insert(error_of_read(stream));
  });
  CHECK(seen == std::set<int>{ECONNRESET, ECANCELED});
}

TEST_CASE("network: a crash in the midst of a handshake") {
  passes([](world& in) {
    host client = in.add("client", [] {
      const net::tcp_stream stream = net::tcp_stream::connect("server", port);
      sleep();
    });
    host server = in.add("server", accept_one);
    sleep_for(std::chrono::microseconds(in.random(8'000)));
    host& crashed = in.random(2) == 0 ? client : server;
    in.crash(crashed);
    sleep_for(1ms);
  });
}

TEST_CASE("network: what is written to a host without power is answered when it is back") {
  passes([](world& in) {
    host server = in.add("server", accept_one);
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    sleep_for(10ms);
    in.crash(server);
    const int first = error_of_write(stream, "hello");  // the reset may have come already
    sleep_for(5s);
    in.restart(server);
    require(first != 0 || error_of_read(stream) == ECONNRESET, "the host does not know it");
  });
}

TEST_CASE("network: a host without power does not take any number of bytes") {
  passes([](world& in) {
    host server = in.add("server", accept_one);
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    sleep_for(10ms);
    in.crash(server);
    const std::string much(1'000'000, 'x');
    const bool in_time = move_on_after(1h - 5min, [&] {
      std::error_code error;
      stream.write_all(std::as_bytes(std::span(much)), error);
      require(static_cast<bool>(error), "it cannot be written");
    });
    (void)in_time;
  });
}

TEST_CASE("network: what a partition holds of a dead host does not arrive") {
  passes([](world& in) {
    std::string got;
    const host server = in.add("server", [&] {
      net::tcp_listener listener(net::endpoint::any(port));
      net::tcp_stream peer = listener.accept();
      std::array<std::byte, 100> buffer;
      std::error_code error;
      while (const std::size_t size = peer.read(buffer, error))
        got.append(reinterpret_cast<const char*>(buffer.data()), size);
      sleep();
    });
    host client = in.add("client", [] {
      sleep_for(10ms);
      net::tcp_stream stream = net::tcp_stream::connect("server", port);
      stream.write_all("a");
      sleep_for(1s);
      stream.write_all("b");
      sleep();
    });
    sleep_for(500ms);
    in.partition(client, server);
    sleep_for(1s);
    in.crash(client);
    in.heal();
    sleep_for(10s);
    require(got == "a", "the dead do not write");
  });
}

TEST_CASE("network: a partition begins while a handshake is under way") {
  std::set<int> errors;
  passes([&](world& in) {
    const host server = in.add("server", accept_one);
    sleep_for(10ms);
    const host client = in.add("client", [&] {
      std::error_code error;
      move_on_after(
          10s, [&] { net::tcp_stream::connect(net::endpoint::parse("10.0.0.2:7000"), error); });
      errors.insert(error.value());
    });
    sleep_for(std::chrono::microseconds(in.random(8'000)));
    in.partition(client, server);
    sleep_for(20s);
  });
  CHECK(errors == std::set<int>{0, ECANCELED});
}

TEST_CASE("network: a connect that was cancelled can be made again") {
  passes([](world& in) {
    const host server = in.add("server", accept_one);
    sleep_for(10ms);
    const net::endpoint target = net::endpoint::parse("10.0.0.2:7000");
    const net::udp_socket unused(net::endpoint::any(0));
    std::error_code error;
    for (int i = 0; i < 3; ++i) {
      move_on_after(std::chrono::microseconds(in.random(3'000)), [&] {
        const net::tcp_stream stream = net::tcp_stream::connect(target, error);
      });
    }
    net::tcp_stream stream = net::tcp_stream::connect(target, error);
    require(!error, "the last one");
  });
}

TEST_CASE("network: a reset wakes every fiber that uses the connection") {
  passes([](world& in) {
    const host server = in.add("server", accept_one);
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    fiber<void> reader = spin([&] {
      std::error_code error;
      std::array<std::byte, 1> buffer;
      stream.read(buffer, error);
    });
    sleep_for(10ms);
    in.net().resets = 1;
    require(error_of_write(stream, "x") == ECONNRESET, "the writer");
    require(move_on_after(1s, [&] { reader.await(); }), "the reader");
    require(error_of_write(stream, "x") == EPIPE, "for good");
  });
}

TEST_CASE("network: a stream that gives its descriptor away keeps its connection") {
  passes([](world& in) {
    const host server = in.add("server", [] {
      net::tcp_listener listener(net::endpoint::any(port));
      net::tcp_listener second(listener.release());
      net::tcp_stream peer = second.accept();
      net::tcp_stream other(peer.release());
      other.write_all("hello");
      sleep();
    });
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    net::tcp_stream other(stream.release());
    std::array<std::byte, 100> buffer;
    require(other.read(buffer) > 0, "the other one reads");
  });
}

TEST_CASE("network: wait_fd waits for bytes, room, the end and a reset") {
  passes([](world& in) {
    in.net().short_transfers = false;
    host server = in.add("server", [] {
      net::tcp_listener listener(net::endpoint::any(port));
      net::tcp_stream peer = listener.accept();
      sleep_for(1s);
      peer.write_all("x");
      sleep_for(1s);
      std::array<std::byte, 70'000> buffer;
      peer.read(buffer);
      peer.shutdown(SHUT_WR);
      sleep();
    });
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    const int number = stream.native_handle();
    require((io::wait_fd(number, POLLIN | POLLOUT) & POLLOUT) != 0, "room");
    stream.write_all(std::string(65'536, 'x'));
    require(io::wait_fd(number, POLLIN | POLLOUT) == POLLIN, "a byte, and no room");
    require(io::wait_fd(number, POLLOUT) == POLLOUT, "room again");
    require((io::wait_fd(number, POLLRDHUP) & POLLRDHUP) != 0, "the end");
    in.crash(server);
  });
}

TEST_CASE("network: a socket that is shut down here is ready") {
  passes([](world& in) {
    const host server = in.add("server", accept_one);
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    stream.shutdown(SHUT_RDWR);
    require((io::wait_fd(stream.native_handle(), POLLIN) & POLLIN) != 0, "its end");
    require(error_of_read(stream) == 0, "which is read");
    require(error_of_write(stream, "x") == EPIPE, "and not written");
    net::tcp_listener listener(net::endpoint::any(port));
    fiber<int> waits = spin([&] {
      std::error_code error;
      listener.accept(error);
      return error.value();
    });
    snooze();
    io::shutdown(listener.native_handle(), SHUT_RD);
    require(waits.await() == EINVAL, "a listener, too");
  });
}

TEST_CASE("network: bytes written after the peer's end are answered by a reset") {
  passes([](world& in) {
    const host server = in.add("server", [] {
      net::tcp_listener listener(net::endpoint::any(port));
      listener.accept();
      sleep();
    });
    sleep_for(10ms);
    net::tcp_stream stream = net::tcp_stream::connect("server", port);
    require(error_of_read(stream) == 0, "the peer has closed");
    require(error_of_write(stream, "x") == 0, "the first write");
    sleep_for(1s);
    require(error_of_write(stream, "x") == EPIPE, "the next one");
    require(error_of_read(stream) == 0, "the end is still the end");
  });
}

TEST_CASE("network: datagrams in numbers, and one that nobody receives") {
  passes([](world& in) {
    std::size_t received = 0;
    const host server = in.add("server", [&] {
      net::udp_socket socket(net::endpoint::any(port));
      std::array<std::array<std::byte, 10>, 4> buffers;
      std::vector<net::datagram_slot> slots;
      for (auto& each : buffers) slots.push_back({.buffer = each});
      for (;;) received += socket.receive_many(slots);
    });
    in.until_idle();
    net::udp_socket socket(net::endpoint::any(0));
    const std::byte one{};
    const std::vector<net::outgoing_datagram> three(
        3, {.bytes = {&one, 1}, .to = net::endpoint::parse("10.0.0.2:7000")});
    std::size_t sent = 0;
    while (sent < 3) sent += socket.send_many(std::span(three).subspan(sent));
    sleep_for(1s);
    require(received == 3, "all of them");
    net::udp_socket connected = net::udp_socket::connect(net::endpoint::parse("10.0.0.2:9"));
    connected.send({&one, 1});
    std::error_code error;
    std::array<std::byte, 1> buffer;
    connected.receive_from(buffer, error);
    require(error == std::errc::connection_refused, "nobody is there");
  });
}

TEST_CASE("network: while time stands nothing arrives") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const outcome result =
        motet::testing::run({.seed = seed, .time = time_mode::stands}, [](world& in) {
          bool connected = false;
          const host server = in.add("server", accept_one);
          in.until_idle();
          group tasks;
          tasks.spin([&] {
            const net::tcp_stream stream = net::tcp_stream::connect("server", port);
            connected = true;
          });
          in.until_idle();
          require(!connected, "no time has passed");
          in.advance(1s);
          require(connected, "a second has passed");
        });
    INFO(result.failure);
    REQUIRE(result.passed);
  }
}
