// SPDX-License-Identifier: MIT
// Streams: turns of readers and writers, blocks that stay whole, closing, and resets.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/full_socket.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::error_of;
using testing::read_text;
using testing::read_to_end;
using testing::reset_when_closed;
using testing::until_waiting;

namespace {

/// The two ends of a connection.
struct connection {
  tcp_stream near;
  tcp_stream far;
};

connection make_connection() {
  tcp_listener listener(endpoint::loopback(0));
  connection made;
  made.near = tcp_stream::connect(listener.local_endpoint());
  made.far = listener.accept();
  return made;
}

void fill(tcp_stream& stream) {
  testing::fill_for_good(stream.native_handle());
}

}  // namespace

TEST_CASE("several readers take turns in the order in which they asked", "[net]") {
  run([] {
    connection c = make_connection();
    group readers;
    std::string order;
    std::string got;
    for (char name = 'a'; name < 'k'; ++name) {
      readers.spin([&, name] {
        for (int i = 0; i < 3; ++i) {
          got += read_text(c.near, 1);
          order += name;
        }
      });
    }
    snooze();
    for (char digit = '0'; digit < '0' + 30; ++digit) {
      c.far.write_all(std::as_bytes(std::span(&digit, 1)));
    }
    readers.await_all();
    CHECK(order == "abcdefghijabcdefghijabcdefghij");
    CHECK(std::is_sorted(got.begin(), got.end()));
    CHECK(got.size() == 30);
  });
}

TEST_CASE("an interrupted reader gives up its place and nothing else", "[net]") {
  run([] {
    connection c = make_connection();
    std::vector<fiber<std::string>> readers;
    for (int i = 0; i < 5; ++i) {
      readers.push_back(spin([&] { return read_text(c.near, 1); }));
    }
    for (auto& each : readers) until_waiting(each);
    readers[0].cancel();  // reads
    readers[2].cancel();  // waits for its turn
    snooze();
    c.far.write_all(bytes_of("xyz"));
    CHECK_THROWS_AS(readers[0].await(), fiber_cancelled);
    CHECK(readers[1].await() == "x");
    CHECK_THROWS_AS(readers[2].await(), fiber_cancelled);
    CHECK(readers[3].await() == "y");
    CHECK(readers[4].await() == "z");
  });
}

TEST_CASE("blocks that several fibers write are never mixed", "[net]") {
  run([] {
    connection c = make_connection();
    constexpr std::size_t size = 300'000;
    group writers;
    for (char name = 'a'; name < 'f'; ++name) {
      writers.spin([&, name] {
        const std::string block(size, name);
        c.near.write_all(bytes_of(block));
        c.near.write_all(bytes_of(block));
      });
    }
    auto reader = spin([&] { return read_to_end(c.far); });
    writers.await_all();
    c.near.close();
    const std::string all = reader.await();
    std::string names;
    for (std::size_t at = 0; at < all.size(); at += size) {
      names += all[at];
      CHECK(all.substr(at, size) == std::string(size, all[at]));
    }
    std::sort(names.begin(), names.end());
    CHECK(names == "aabbccddee");
  });
}

TEST_CASE("blocks of many parts are written one after the other", "[net]") {
  run([] {
    connection c = make_connection();
    const int little = 4096;
    for (tcp_stream* each : {&c.near, &c.far}) {
      const int which = each == &c.near ? SO_SNDBUF : SO_RCVBUF;
      REQUIRE(::setsockopt(each->native_handle(), SOL_SOCKET, which, &little, sizeof little) == 0);
    }
    const std::size_t size = testing::scaled(100'000, 30'000);
    group writers;
    for (const char name : {'a', 'b', 'c'}) {
      writers.spin([&c, name, size] { c.near.write_all(bytes_of(std::string(size, name))); });
    }
    auto reader = spin([&] {
      std::string all;
      std::array<std::byte, 3000> part{};
      while (all.size() < 3 * size) {
        const std::size_t got = c.far.read(part);
        REQUIRE(got > 0);
        all += testing::text_of(std::span(part).first(got));
        snooze();  // the writers wait, all but one for their turn
      }
      return all;
    });
    const std::string all = reader.await();
    for (std::size_t at = 0; at < all.size(); at += size) {
      CHECK(all.substr(at, size) == std::string(size, all[at]));
    }
    writers.await_all();
  });
}

TEST_CASE("an interrupted write_all passes its turn on", "[net]") {
  run([] {
    connection c = make_connection();
    fill(c.near);
    const std::string block(std::size_t{4} << 20, 'n');
    auto stuck = spin([&] { c.near.write_all(bytes_of(block)); });
    auto next = spin([&] { c.near.write_all(bytes_of("last")); });
    until_waiting(stuck);
    until_waiting(next);
    stuck.cancel();
    CHECK_THROWS_AS(stuck.await(), fiber_cancelled);
    auto reader = spin([&] { return read_to_end(c.far); });
    next.await();
    c.near.shutdown(SHUT_WR);
    const std::string all = reader.await();
    REQUIRE(all.size() > 4);
    CHECK(all.substr(all.size() - 4) == "last");
  });
}

TEST_CASE("closing a stream ends who reads and writes on it, and who waits for a turn", "[net]") {
  run([] {
    connection c = make_connection();
    fill(c.near);
    std::vector<fiber<std::error_code>> users;
    for (int i = 0; i < 3; ++i) {
      users.push_back(spin([&] { return error_of([&] { read_text(c.near); }); }));
      users.push_back(spin([&] { return error_of([&] { c.near.write(bytes_of("x")); }); }));
      users.push_back(spin([&] { return error_of([&] { c.near.write_all(bytes_of("x")); }); }));
    }
    for (auto& each : users) until_waiting(each);
    c.near.close();
    for (auto& each : users) CHECK(each.await() == bad_descriptor);
    CHECK(c.near.native_handle() == -1);
    CHECK(error_of([&] { read_text(c.near); }) == bad_descriptor);
    CHECK(error_of([&] { c.near.write(bytes_of("x")); }) == bad_descriptor);
    CHECK(error_of([&] { c.near.shutdown(SHUT_WR); }) == bad_descriptor);
    CHECK(error_of([&] { (void)c.near.peer_endpoint(); }) == bad_descriptor);
    CHECK_NOTHROW(c.near.close());
    std::error_code error;
    c.near.write_all(bytes_of("x"), error);
    CHECK(error == bad_descriptor);
  });
}

TEST_CASE("a reader that was given the turn when the stream was closed is told too", "[net]") {
  run([] {
    connection c = make_connection();
    std::error_code second_error;
    auto first = spin([&] { return read_text(c.near, 1); });
    auto second = spin([&] { second_error = error_of([&] { read_text(c.near, 1); }); });
    until_waiting(first);
    until_waiting(second);
    c.far.write_all(bytes_of("x"));
    CHECK(first.await() == "x");
    c.near.close();  // at this moment the turn may be the second's
    second.await();
    CHECK(second_error == bad_descriptor);
  });
}

TEST_CASE("shutdown ends a reader of the same stream without an error", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return read_to_end(c.near); });
    until_waiting(reader);
    c.near.shutdown(SHUT_RD);
    CHECK(reader.await().empty());
  });
}

TEST_CASE("another thread may shut a stream down, but not close it", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return read_to_end(c.near); });
    until_waiting(reader);
    bool refused = false;
    std::thread other([&] {
      try {
        c.near.close();
      } catch (const std::logic_error&) {
        refused = true;
      }
      c.near.shutdown(SHUT_RDWR);
    });
    CHECK(reader.await().empty());
    other.join();
    CHECK(refused);
  });
}

TEST_CASE("a stream may be moved while a fiber reads from it", "[net]") {
  run([] {
    connection c = make_connection();
    auto streams = std::make_unique<std::vector<tcp_stream>>();
    streams->push_back(std::move(c.near));
    auto reader = spin([&] { return read_text(streams->front()); });
    until_waiting(reader);
    std::vector<tcp_stream> elsewhere = std::move(*streams);
    elsewhere.reserve(100);
    streams.reset();
    c.far.write_all(bytes_of("to whom it was addressed"));
    CHECK(reader.await() == "to whom it was addressed");
  });
}

TEST_CASE("a stream that connects does not hold up its thread: its socket never blocks", "[net]") {
  run([] {
    connection c = make_connection();
    CHECK((::fcntl(c.near.native_handle(), F_GETFL) & O_NONBLOCK) != 0);
  });
}

TEST_CASE("streams may be closed on another thread while their own is busy", "[net]") {
  run([] {
    for (int round = 0; round < 20; ++round) {
      std::array<connection, 3> used;
      for (connection& each : used) each = make_connection();
      auto pending = spin([] { sleep_for(1h); });  // or nobody would poll
      std::vector<fiber<std::string>> readers;
      for (connection& each : used) readers.push_back(spin([&] { return read_text(each.near); }));
      for (auto& reader : readers) until_waiting(reader);
      for (connection& each : used) each.far.write_all(bytes_of("x"));
      for (auto& reader : readers) {
        while (reader.state() != fiber_state::dead) snooze();  // polls, but never waits
      }
      const fd duplicate(::dup(used[0].near.native_handle()));
      std::thread([&] {
        for (connection& each : used) const tcp_stream closed_here = std::move(each.near);
      }).join();
      used[0].far.write_all(bytes_of("for the duplicate alone"));
      for (int i = 0; i < 20; ++i) snooze();
      pending.cancel();
      CHECK(read_to_end(used[1].far).empty());
    }
  });
}

TEST_CASE("a stream that was moved from is not connected, and its operations went along", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return read_text(c.near); });
    until_waiting(reader);
    tcp_stream moved = std::move(c.near);
    CHECK(error_of([&] { read_text(c.near); }) == bad_descriptor);
    CHECK(error_of([&] { c.near.write_all(bytes_of("x")); }) == bad_descriptor);
    c.far.write_all(bytes_of("to whoever it is now"));
    CHECK(reader.await() == "to whoever it is now");

    connection other = make_connection();
    auto ended = spin([&] { return error_of([&] { read_text(moved); }); });
    until_waiting(ended);
    moved = std::move(other.near);  // closes what it was
    CHECK(ended.await() == bad_descriptor);
    CHECK(read_to_end(c.far).empty());
    other.far.write_all(bytes_of("new"));
    CHECK(read_text(moved) == "new");
  });
}

TEST_CASE("a stream sends small pieces at once", "[net]") {
  run([] {
    connection c = make_connection();
    for (const tcp_stream* each : {&c.near, &c.far}) {
      int on = 0;
      socklen_t size = sizeof on;
      ::getsockopt(each->native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, &size);
      CHECK(on != 0);
    }
    c.near.set_no_delay(false);
    int on = 1;
    socklen_t size = sizeof on;
    ::getsockopt(c.near.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, &size);
    CHECK(on == 0);
  });
}

TEST_CASE("a reset is an error for whoever reads or writes, and no signal", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return error_of([&] { read_text(c.near); }); });
    until_waiting(reader);
    reset_when_closed(c.far);
    c.far.close();
    CHECK(reader.await() == std::errc::connection_reset);
    CHECK(error_of([&] { c.near.write_all(bytes_of("x")); }) == std::errc::broken_pipe);
  });
}

TEST_CASE("streams opened and closed by the thousand leave nothing behind", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const std::size_t before = testing::open_descriptors();
    const std::size_t rounds = testing::scaled(5'000, testing::under_tsan ? 300 : 1'000);
    for (std::size_t round = 0; round < rounds; ++round) {
      tcp_stream near = tcp_stream::connect(listener.local_endpoint());
      tcp_stream far = listener.accept();
      auto reader = spin([&] { return read_text(far); });
      if (round % 2 == 0) until_waiting(reader);
      near.write_all(bytes_of("x"));
      REQUIRE(reader.await() == "x");
      if (round % 3 == 0) reset_when_closed(near);
    }
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a shutdown after a reset says so without throwing", "[net]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto here = net::tcp_stream::connect(listener.local_endpoint());
    {
      auto there = listener.accept();
      const linger at_once{1, 0};
      ::setsockopt(there.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    std::array<std::byte, 1> byte{};
    CHECK_THROWS_AS(here.read(byte), std::system_error);
    std::error_code error;
    here.shutdown(SHUT_WR, error);
    CHECK(error == std::errc::not_connected);
    CHECK_THROWS_AS(here.shutdown(SHUT_WR), std::system_error);
    net::tcp_stream none;
    none.shutdown(SHUT_WR, error);
    CHECK(error == std::errc::bad_file_descriptor);
    auto again = net::tcp_stream::connect(listener.local_endpoint());
    again.shutdown(SHUT_WR, error);
    CHECK(!error);
  });
}

TEST_CASE("a connect that was interrupted has not happened, and can be made again", "[net]") {
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("mode " << mode);
    run([&] {
      const fd listener = testing::make_listener(0, 0);
      const std::uint16_t port = testing::port_of(listener.get());
      const fd first = testing::connect_to(port);  // no more come in
      const fd socket = testing::make_tcp_socket(mode);
      const sockaddr_in to = testing::loopback_address(port);
      const auto connect = [&] {
        io::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
      };
      CHECK(!move_on_after(20ms, connect));
      CHECK(!move_on_after(20ms, [&] { net::tcp_stream::connect(net::endpoint::loopback(port)); }));
      const fd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      connect();
      const fd second(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      REQUIRE(::send(socket.get(), "hello", 5, 0) == 5);
      CHECK(testing::ready_now(second.get(), 0) == false);
      std::array<std::byte, 8> bytes{};
      CHECK(io::recv(second.get(), bytes) == 5);
      net::tcp_stream::connect(net::endpoint::loopback(port));
    });
  }
}
