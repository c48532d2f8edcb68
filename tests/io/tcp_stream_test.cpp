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
  tcp_stream stream;
  tcp_stream peer;
};

connection make_connection() {
  tcp_listener listener(endpoint::loopback(0));
  connection ends;
  ends.stream = tcp_stream::connect(listener.local_endpoint());
  ends.peer = listener.accept();
  return ends;
}

void fill(tcp_stream& stream) {
  testing::fill_for_good(stream.native_handle());
}

}  // namespace

TEST_CASE("tcp_stream::read() serves several readers in the order of their calls", "[net]") {
  run([] {
    connection c = make_connection();
    group readers;
    std::string order;
    std::string text;
    for (char name = 'a'; name < 'k'; ++name) {
      readers.spin([&, name] {
        for (int i = 0; i < 3; ++i) {
          text += read_text(c.stream, 1);
          order += name;
        }
      });
    }
    snooze();
    for (char digit = '0'; digit < '0' + 30; ++digit) {
      c.peer.write_all(std::as_bytes(std::span(&digit, 1)));
    }
    readers.await_all();
    CHECK(order == "abcdefghijabcdefghijabcdefghij");
    CHECK(std::is_sorted(text.begin(), text.end()));
    CHECK(text.size() == 30);
  });
}

TEST_CASE("tcp_stream::read() that is interrupted gives up its place and nothing else", "[net]") {
  run([] {
    connection c = make_connection();
    std::vector<fiber<std::string>> readers;
    for (int i = 0; i < 5; ++i) {
      readers.push_back(spin([&] { return read_text(c.stream, 1); }));
    }
    for (auto& reader : readers) until_waiting(reader);
    readers[0].cancel();  // reads
    readers[2].cancel();  // waits for its turn
    snooze();
    c.peer.write_all(bytes_of("xyz"));
    CHECK_THROWS_AS(readers[0].await(), fiber_cancelled);
    CHECK(readers[1].await() == "x");
    CHECK_THROWS_AS(readers[2].await(), fiber_cancelled);
    CHECK(readers[3].await() == "y");
    CHECK(readers[4].await() == "z");
  });
}

TEST_CASE("tcp_stream::write_all() never mixes the blocks of several fibers", "[net]") {
  run([] {
    connection c = make_connection();
    constexpr std::size_t size = 300'000;
    group writers;
    for (char name = 'a'; name < 'f'; ++name) {
      writers.spin([&, name] {
        const std::string block(size, name);
        c.stream.write_all(bytes_of(block));
        c.stream.write_all(bytes_of(block));
      });
    }
    auto reader = spin([&] { return read_to_end(c.peer); });
    writers.await_all();
    c.stream.close();
    const std::string text = reader.await();
    std::string names;
    for (std::size_t offset = 0; offset < text.size(); offset += size) {
      names += text[offset];
      CHECK(text.substr(offset, size) == std::string(size, text[offset]));
    }
    std::sort(names.begin(), names.end());
    CHECK(names == "aabbccddee");
  });
}

TEST_CASE("tcp_stream::write_all() writes blocks of many parts one after the other", "[net]") {
  run([] {
    connection c = make_connection();
    const int little = 4096;
    REQUIRE(::setsockopt(c.stream.native_handle(), SOL_SOCKET, SO_SNDBUF, &little, sizeof little) ==
            0);
    constexpr std::size_t size = 300'000;  // a packet on the loopback is up to 64 KiB
    group writers;
    for (const char name : {'a', 'b', 'c'}) {
      writers.spin([&c, name] { c.stream.write_all(bytes_of(std::string(size, name))); });
    }
    auto reader = spin([&] {
      std::string text;
      std::array<std::byte, 3000> part{};
      while (text.size() < 3 * size) {
        const std::size_t count = c.peer.read(part);
        REQUIRE(count > 0);
        text += testing::text_of(std::span(part).first(count));
        snooze();  // the writers wait, all but one for their turn
      }
      return text;
    });
    const std::string text = reader.await();
    for (std::size_t offset = 0; offset < text.size(); offset += size) {
      CAPTURE(offset);
      CHECK((text.substr(offset, size) == std::string(size, text[offset])));
    }
    writers.await_all();
  });
}

TEST_CASE("tcp_stream::write_all() passes its turn on when it is interrupted", "[net]") {
  run([] {
    connection c = make_connection();
    fill(c.stream);
    const std::string block(std::size_t{4} << 20, 'n');
    auto stuck = spin([&] { c.stream.write_all(bytes_of(block)); });
    auto next = spin([&] { c.stream.write_all(bytes_of("last")); });
    until_waiting(stuck);
    until_waiting(next);
    stuck.cancel();
    CHECK_THROWS_AS(stuck.await(), fiber_cancelled);
    auto reader = spin([&] { return read_to_end(c.peer); });
    next.await();
    c.stream.shutdown(SHUT_WR);
    const std::string text = reader.await();
    REQUIRE(text.size() > 4);
    CHECK(text.substr(text.size() - 4) == "last");
  });
}

TEST_CASE("tcp_stream::close() ends its readers, its writers and those that wait for a turn",
          "[net]") {
  run([] {
    connection c = make_connection();
    fill(c.stream);
    std::vector<fiber<std::error_code>> users;
    for (int i = 0; i < 3; ++i) {
      users.push_back(spin([&] { return error_of([&] { read_text(c.stream); }); }));
      users.push_back(spin([&] { return error_of([&] { c.stream.write(bytes_of("x")); }); }));
      users.push_back(spin([&] { return error_of([&] { c.stream.write_all(bytes_of("x")); }); }));
    }
    for (auto& user : users) until_waiting(user);
    c.stream.close();
    for (auto& user : users) CHECK(user.await() == bad_descriptor);
    CHECK(c.stream.native_handle() == -1);
    CHECK(error_of([&] { read_text(c.stream); }) == bad_descriptor);
    CHECK(error_of([&] { c.stream.write(bytes_of("x")); }) == bad_descriptor);
    CHECK(error_of([&] { c.stream.shutdown(SHUT_WR); }) == bad_descriptor);
    CHECK(error_of([&] { (void)c.stream.peer_endpoint(); }) == bad_descriptor);
    CHECK_NOTHROW(c.stream.close());
    std::error_code error;
    c.stream.write_all(bytes_of("x"), error);
    CHECK(error == bad_descriptor);
  });
}

TEST_CASE("tcp_stream::close() ends a reader that has just got its turn", "[net]") {
  run([] {
    connection c = make_connection();
    std::error_code second_error;
    auto first = spin([&] { return read_text(c.stream, 1); });
    auto second = spin([&] { second_error = error_of([&] { read_text(c.stream, 1); }); });
    until_waiting(first);
    until_waiting(second);
    c.peer.write_all(bytes_of("x"));
    CHECK(first.await() == "x");
    c.stream.close();  // at this moment the turn may be the second's
    second.await();
    CHECK(second_error == bad_descriptor);
  });
}

TEST_CASE("tcp_stream::shutdown() ends a reader of the same stream without an error", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return read_to_end(c.stream); });
    until_waiting(reader);
    c.stream.shutdown(SHUT_RD);
    CHECK(reader.await().empty());
  });
}

TEST_CASE("tcp_stream accepts shutdown() from another thread, but not close()", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return read_to_end(c.stream); });
    until_waiting(reader);
    bool refused = false;
    std::thread closer([&] {
      try {
        c.stream.close();
      } catch (const std::logic_error&) {
        refused = true;
      }
      c.stream.shutdown(SHUT_RDWR);
    });
    CHECK(reader.await().empty());
    closer.join();
    CHECK(refused);
  });
}

TEST_CASE("tcp_stream may be moved while a fiber reads from it", "[net]") {
  run([] {
    connection c = make_connection();
    auto streams = std::make_unique<std::vector<tcp_stream>>();
    streams->push_back(std::move(c.stream));
    auto reader = spin([&] { return read_text(streams->front()); });
    until_waiting(reader);
    std::vector<tcp_stream> elsewhere = std::move(*streams);
    elsewhere.reserve(100);
    streams.reset();
    c.peer.write_all(bytes_of("to whom it was addressed"));
    CHECK(reader.await() == "to whom it was addressed");
  });
}

TEST_CASE("tcp_stream::connect() makes a socket that never blocks", "[net]") {
  run([] {
    connection c = make_connection();
    CHECK((::fcntl(c.stream.native_handle(), F_GETFL) & O_NONBLOCK) != 0);
  });
}

TEST_CASE("tcp_stream may be closed on another thread while its own is busy", "[net]") {
  run([] {
    for (int round = 0; round < 20; ++round) {
      std::array<connection, 3> connections;
      for (connection& entry : connections) entry = make_connection();
      auto sleeper = spin([] { sleep_for(1h); });  // or nobody would poll
      std::vector<fiber<std::string>> readers;
      for (connection& entry : connections)
        readers.push_back(spin([&] { return read_text(entry.stream); }));
      for (auto& reader : readers) until_waiting(reader);
      for (connection& entry : connections) entry.peer.write_all(bytes_of("x"));
      for (auto& reader : readers) {
        while (reader.state() != fiber_state::dead) snooze();  // polls, but never waits
      }
      const fd duplicate(::dup(connections[0].stream.native_handle()));
      std::thread([&] {
        for (connection& entry : connections)
          const tcp_stream closed_here = std::move(entry.stream);
      }).join();
      connections[0].peer.write_all(bytes_of("for the duplicate alone"));
      for (int i = 0; i < 20; ++i) snooze();
      sleeper.cancel();
      CHECK(read_to_end(connections[1].peer).empty());
    }
  });
}

TEST_CASE("tcp_stream that was moved from is not connected, and its operations go along", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return read_text(c.stream); });
    until_waiting(reader);
    tcp_stream target = std::move(c.stream);
    CHECK(error_of([&] { read_text(c.stream); }) == bad_descriptor);
    CHECK(error_of([&] { c.stream.write_all(bytes_of("x")); }) == bad_descriptor);
    c.peer.write_all(bytes_of("to whoever it is now"));
    CHECK(reader.await() == "to whoever it is now");

    connection second = make_connection();
    auto second_reader = spin([&] { return error_of([&] { read_text(target); }); });
    until_waiting(second_reader);
    target = std::move(second.stream);  // closes what it was
    CHECK(second_reader.await() == bad_descriptor);
    CHECK(read_to_end(c.peer).empty());
    second.peer.write_all(bytes_of("new"));
    CHECK(read_text(target) == "new");
  });
}

TEST_CASE("tcp_stream::set_no_delay() is on by default", "[net]") {
  run([] {
    connection c = make_connection();
    for (const tcp_stream* socket : {&c.stream, &c.peer}) {
      int value = 0;
      socklen_t size = sizeof value;
      ::getsockopt(socket->native_handle(), IPPROTO_TCP, TCP_NODELAY, &value, &size);
      CHECK(value != 0);
    }
    c.stream.set_no_delay(false);
    int value = 1;
    socklen_t size = sizeof value;
    ::getsockopt(c.stream.native_handle(), IPPROTO_TCP, TCP_NODELAY, &value, &size);
    CHECK(value == 0);
  });
}

TEST_CASE("tcp_stream throws connection_reset without a signal after a reset", "[net]") {
  run([] {
    connection c = make_connection();
    auto reader = spin([&] { return error_of([&] { read_text(c.stream); }); });
    until_waiting(reader);
    reset_when_closed(c.peer);
    c.peer.close();
    CHECK(reader.await() == std::errc::connection_reset);
    CHECK(error_of([&] { c.stream.write_all(bytes_of("x")); }) == std::errc::broken_pipe);
  });
}

TEST_CASE("tcp_stream leaves nothing behind when thousands are opened and closed", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const std::size_t descriptors = testing::open_descriptors();
    const std::size_t rounds = testing::scaled(5'000, testing::under_tsan ? 300 : 1'000);
    for (std::size_t round = 0; round < rounds; ++round) {
      tcp_stream stream = tcp_stream::connect(listener.local_endpoint());
      tcp_stream peer = listener.accept();
      auto reader = spin([&] { return read_text(peer); });
      if (round % 2 == 0) until_waiting(reader);
      stream.write_all(bytes_of("x"));
      REQUIRE(reader.await() == "x");
      if (round % 3 == 0) reset_when_closed(stream);
    }
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("tcp_stream::shutdown() after a reset sets the error code without throwing", "[net]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto client = net::tcp_stream::connect(listener.local_endpoint());
    {
      auto server = listener.accept();
      const linger at_once{1, 0};
      ::setsockopt(server.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    std::array<std::byte, 1> byte{};
    CHECK_THROWS_AS(client.read(byte), std::system_error);
    std::error_code error;
    client.shutdown(SHUT_WR, error);
    CHECK(error == std::errc::not_connected);
    CHECK_THROWS_AS(client.shutdown(SHUT_WR), std::system_error);
    net::tcp_stream blank;
    blank.shutdown(SHUT_WR, error);
    CHECK(error == std::errc::bad_file_descriptor);
    auto second_stream = net::tcp_stream::connect(listener.local_endpoint());
    second_stream.shutdown(SHUT_WR, error);
    CHECK(!error);
  });
}

TEST_CASE("io::connect() that was interrupted has not happened, and can be made again", "[net]") {
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("mode " << mode);
    run([&] {
      const fd listener = testing::make_listener(0, 0);
      const std::uint16_t port = testing::port_of(listener.get());
      const fd first = testing::connect_to(port);  // no more come in
      const fd socket = testing::make_tcp_socket(mode);
      const sockaddr_in address = testing::loopback_address(port);
      const auto connect = [&] {
        io::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
      };
      CHECK(!move_on_after(20ms, connect));
      CHECK(!move_on_after(20ms, [&] { net::tcp_stream::connect(net::endpoint::loopback(port)); }));
      const fd caller(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
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
