// SPDX-License-Identifier: MIT
// Endpoints, streams, listeners, and a server that outlives what goes wrong with its connections.
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;
using testing::bytes_of;

namespace {

void until_waiting(const fiber_ref& fiber) {
  while (fiber.state() != fiber_state::waiting && fiber.state() != fiber_state::dead) snooze();
}

template <typename F>
std::error_code error_of(F f) {
  try {
    f();
  } catch (const std::system_error& refused) {
    return refused.code();
  }
  return {};
}

std::string read_text(tcp_stream& stream, std::size_t most = 64) {
  std::vector<std::byte> buffer(most);
  const std::size_t size = stream.read(buffer);
  return testing::text_of(std::span(buffer).first(size));
}

std::string read_to_end(tcp_stream& stream) {
  std::string all;
  for (std::string part = read_text(stream, 4096); !part.empty(); part = read_text(stream, 4096)) {
    all += part;
  }
  return all;
}

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
  testing::fill(stream.native_handle());
}

void echo(tcp_stream peer) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = peer.read(buffer)) peer.write_all(std::span(buffer).first(size));
}

/// Sends and receives `text`; a wrong or missing answer is false.
bool echoes(tcp_stream& stream, std::string_view text) {
  stream.write_all(bytes_of(text));
  std::string answer;
  while (answer.size() < text.size()) {
    const std::string part = read_text(stream);
    if (part.empty()) return false;
    answer += part;
  }
  return answer == text;
}

/// A limit of this process, for as long as it lives.
class lower_limit {
 public:
  lower_limit(__rlimit_resource which, std::size_t soft) : which_(which) {
    ::getrlimit(which, &before_);
    rlimit lower = before_;
    lower.rlim_cur = soft;
    REQUIRE(::setrlimit(which, &lower) == 0);
  }
  lower_limit(const lower_limit&) = delete;
  lower_limit& operator=(const lower_limit&) = delete;
  ~lower_limit() { ::setrlimit(which_, &before_); }

 private:
  __rlimit_resource which_;
  rlimit before_{};
};

void reset_when_closed(const tcp_stream& stream) {
  const linger at_once{1, 0};
  ::setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

const auto bad_descriptor = std::errc::bad_file_descriptor;

}  // namespace

TEST_CASE("an endpoint is read from its text and prints the same", "[net]") {
  for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80",
                           "[::]:0", "[2001:db8::1]:443", "[::ffff:1.2.3.4]:9"}) {
    INFO(text);
    const endpoint parsed = endpoint::parse(text);
    CHECK(parsed.to_string() == text);
    CHECK(parsed == endpoint::parse(text));
    CHECK(endpoint(parsed.address(), parsed.length()) == parsed);
  }
  CHECK(endpoint::parse("[2001:0db8:0:0::1]:7").to_string() == "[2001:db8::1]:7");
  CHECK(endpoint::parse("[fe80::1%1]:7").to_string() == "[fe80::1%1]:7");
  CHECK_FALSE(endpoint::parse("[fe80::1%1]:7") == endpoint::parse("[fe80::1%2]:7"));
  CHECK(endpoint::parse("[fe80::1%lo]:7").to_string() ==
        "[fe80::1%" + std::to_string(::if_nametoindex("lo")) + "]:7");
  for (const char* text : {"[fe80::1%]:7", "[fe80::1%0]:7", "[fe80::1%no-such-link]:7",
                           "[fe80::1%4294967296]:7", "127.0.0.1%1:7"}) {
    INFO(text);
    CHECK_THROWS_AS(endpoint::parse(text), std::invalid_argument);
  }
  CHECK(endpoint::parse("127.0.0.1:80") == endpoint::loopback(80));
  CHECK(endpoint::parse("0.0.0.0:80") == endpoint::any(80));
  CHECK(endpoint() == endpoint::any(0));
  CHECK(endpoint::loopback(8080).port() == 8080);
  CHECK(endpoint::parse("[::1]:8080").port() == 8080);
  CHECK_FALSE(endpoint::loopback(1) == endpoint::loopback(2));
  CHECK_FALSE(endpoint::loopback(1) == endpoint::any(1));
  CHECK_FALSE(endpoint::parse("0.0.0.0:1") == endpoint::parse("[::]:1"));
}

TEST_CASE("nothing of an endpoint depends on what its memory held before", "[net]") {
  alignas(endpoint) std::byte memory[sizeof(endpoint)];
  std::memset(memory, 0xff, sizeof memory);
  asm volatile("" : : "r"(memory) : "memory");  // they are really written
  const auto* parsed = ::new (static_cast<void*>(memory)) endpoint(endpoint::parse("[::1]:80"));
  sockaddr_in6 address{};
  REQUIRE(parsed->length() == sizeof address);
  std::memcpy(&address, parsed->address(), sizeof address);
  CHECK(address.sin6_scope_id == 0);
  CHECK(address.sin6_flowinfo == 0);
  CHECK(*parsed == endpoint::parse("[::1]:80"));
}

TEST_CASE("a text that is no endpoint is refused with what is wrong", "[net]") {
  for (const char* text : {"",
                           ":",
                           "80",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:x",
                           "127.0.0.1:80 ",
                           " 127.0.0.1:80",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "127.0.0.1:+1",
                           "127.0.0.1:0x50",
                           "127.0.0.1:8 0",
                           "127.0.0:80",
                           "127.0.0.256:80",
                           "localhost:80",
                           "::1:80",
                           "[::1]",
                           "[::1]:",
                           "[::1:80",
                           "::1]:80",
                           "[127.0.0.1]:80",
                           "[::1]80",
                           "[]:80",
                           "[:80",
                           "[",
                           "]:80",
                           "[::1]x:80",
                           "[[::1]]:80",
                           "[::g]:80",
                           "1.2.3.4:80:90"}) {
    INFO("\"" << text << "\"");
    std::string why;
    try {
      (void)endpoint::parse(text);
    } catch (const std::invalid_argument& refused) {
      why = refused.what();
    }
    CHECK(why.find("\"" + std::string(text) + "\"") != std::string::npos);
    CHECK(why.size() > std::string(text).size() + 10);
  }
  using namespace std::string_view_literals;
  CHECK_THROWS_AS(endpoint::parse("127.0.0.1\0:80"sv), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::parse("[::1\0]:80"sv), std::invalid_argument);
}

TEST_CASE("an address of another family, or cut short, is no endpoint", "[net]") {
  sockaddr other{};
  other.sa_family = AF_UNIX;
  CHECK_THROWS_AS(endpoint(&other, sizeof other), std::invalid_argument);
  const endpoint whole = endpoint::parse("[::1]:80");
  CHECK_THROWS_AS(endpoint(whole.address(), whole.length() - 1), std::invalid_argument);
}

TEST_CASE("a listener on port 0 says which one it has, and connections reach it", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint where = listener.local_endpoint();
    CHECK(where.port() != 0);
    auto accepting = spin([&] { return listener.accept(); });
    until_waiting(accepting);
    tcp_stream near = tcp_stream::connect(where);
    tcp_stream far = std::move(accepting).await();
    CHECK(near.peer_endpoint() == where);
    CHECK(far.local_endpoint() == where);
    CHECK(far.peer_endpoint() == near.local_endpoint());
    near.write_all(bytes_of("hello"));
    CHECK(read_text(far) == "hello");
    far.write_all(bytes_of("bye"));
    far.shutdown(SHUT_WR);
    CHECK(read_to_end(near) == "bye");
    near.write_all(bytes_of("still open this way"));
    near.close();
    CHECK(read_to_end(far) == "still open this way");
  });
}

TEST_CASE("the forms with an error code do the same", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::error_code error = std::make_error_code(std::errc::io_error);
    tcp_stream near = tcp_stream::connect(listener.local_endpoint(), error);
    CHECK_FALSE(error);
    error = std::make_error_code(std::errc::io_error);
    tcp_stream far = listener.accept(error);
    CHECK_FALSE(error);
    std::byte buffer[8];
    CHECK(near.write(bytes_of("ab"), error) == 2);
    near.write_all(bytes_of("cd"), error);
    CHECK_FALSE(error);
    near.shutdown(SHUT_WR);
    CHECK(far.read(std::span(buffer).first(4), error) > 0);
    while (far.read(buffer, error) != 0) {
    }
    CHECK_FALSE(error);

    const endpoint nobody = endpoint::loopback(testing::unused_port());
    const tcp_stream refused = tcp_stream::connect(nobody, error);
    CHECK(error == std::errc::connection_refused);
    CHECK(refused.native_handle() == -1);
    CHECK(error_of([&] { tcp_stream::connect(nobody); }) == std::errc::connection_refused);
    listener.close();
    const tcp_stream none = listener.accept(error);
    CHECK(error == bad_descriptor);
    CHECK(none.native_handle() == -1);
  });
}

TEST_CASE("IPv6 works like IPv4", "[net]") {
  const fd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const endpoint loopback = endpoint::parse("[::1]:0");
  if (!probe || ::bind(probe.get(), loopback.address(), loopback.length()) != 0) {
    WARN("there is no IPv6 here");
    return;
  }
  run([&] {
    tcp_listener listener(loopback);
    tcp_stream near = tcp_stream::connect(listener.local_endpoint());
    tcp_stream far = listener.accept();
    CHECK(near.peer_endpoint() == listener.local_endpoint());
    near.write_all(bytes_of("six"));
    CHECK(read_text(far) == "six");
  });
}

TEST_CASE("a listener that cannot be says why", "[net]") {
  run([] {
    CHECK_THROWS_AS(tcp_listener(endpoint::loopback(0), 0), std::invalid_argument);
    tcp_listener first(endpoint::loopback(0));
    std::string text;
    try {
      tcp_listener(first.local_endpoint());
    } catch (const std::system_error& refused) {
      CHECK(refused.code() == std::errc::address_in_use);
      text = refused.what();
    }
    CHECK(text.find(first.local_endpoint().to_string()) != std::string::npos);
  });
}

TEST_CASE("closing a listener ends who accepts on it", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    auto first = spin([&] { return error_of([&] { listener.accept(); }); });
    auto second = spin([&] { return error_of([&] { listener.accept(); }); });
    until_waiting(first);
    until_waiting(second);
    listener.close();
    CHECK(first.await() == bad_descriptor);
    CHECK(second.await() == bad_descriptor);
    CHECK(listener.native_handle() == -1);
    CHECK(error_of([&] { listener.accept(); }) == bad_descriptor);
    CHECK(error_of([&] { (void)listener.local_endpoint(); }) == bad_descriptor);
    CHECK(error_of([&] { listener.serve([](tcp_stream) {}); }) == bad_descriptor);
  });
}

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
    constexpr std::size_t size = 100'000;
    group writers;
    for (const char name : {'a', 'b', 'c'}) {
      writers.spin([&c, name] { c.near.write_all(bytes_of(std::string(size, name))); });
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

TEST_CASE("another thread may not close a listener that accepts; fibers accept in turn", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::vector<int> order;
    std::vector<fiber<void>> accepting;
    for (int i = 0; i < 3; ++i) {
      accepting.push_back(spin([&, i] {
        listener.accept();
        order.push_back(i);
      }));
    }
    for (auto& each : accepting) until_waiting(each);
    std::thread([&] { CHECK_THROWS_AS(listener.close(), std::logic_error); }).join();
    for (int i = 0; i < 2; ++i) {
      tcp_stream::connect(listener.local_endpoint());
      accepting[static_cast<std::size_t>(i)].await();
    }
    CHECK(order == std::vector<int>{0, 1});
    listener.close();
    CHECK(error_of([&] { accepting[2].await(); }) == bad_descriptor);
    CHECK(error_of([&] { listener.accept(); }) == bad_descriptor);
  });
}

TEST_CASE("a server outlives an on_error that throws", "[net]") {
  int unhandled = 0;
  options chosen;
  chosen.on_unhandled = [&](const std::exception_ptr&) { ++unhandled; };
  run(chosen, [&] {
    tcp_listener listener(endpoint::loopback(0));
    group server;
    auto serving = server.spin([&] {
      listener.serve([](const tcp_stream&) { throw std::runtime_error("handler"); },
                     [](const std::exception_ptr&) { throw std::runtime_error("on_error"); });
    });
    for (int i = 0; i < 2; ++i) {
      tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
      CHECK(read_to_end(peer).empty());
    }
    CHECK(serving.state() == fiber_state::waiting);
    serving.cancel();
  });
  CHECK(unhandled == 2);
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

TEST_CASE("serve runs a fiber for each connection, all at once", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint where = listener.local_endpoint();
    auto serving = spin([&] { listener.serve(echo); });
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(tcp_stream::connect(where));
    for (int round = 0; round < 3; ++round) {
      for (tcp_stream& each : clients) CHECK(echoes(each, "round " + std::to_string(round)));
    }
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
    for (tcp_stream& each : clients) CHECK(read_to_end(each).empty());
  });
}

TEST_CASE("a handler that fails ends its own connection and is reported", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint where = listener.local_endpoint();
    std::vector<std::string> failures;
    group both;
    auto serving = both.spin([&] {
      listener.serve(
          [](tcp_stream peer) {
            const std::string text = read_text(peer);
            if (text == "fail") throw std::runtime_error("as it was told");
            peer.write_all(bytes_of(text));
          },
          [&](const std::exception_ptr& error) {
            try {
              std::rethrow_exception(error);
            } catch (const std::exception& e) {
              failures.emplace_back(e.what());
            }
          });
    });
    tcp_stream good = tcp_stream::connect(where);
    for (int i = 0; i < 3; ++i) {
      tcp_stream bad = tcp_stream::connect(where);
      bad.write_all(bytes_of("fail"));
      CHECK(read_to_end(bad).empty());
    }
    CHECK(echoes(good, "still here"));
    CHECK(failures == std::vector<std::string>(3, "as it was told"));
    serving.cancel();
  });
}

TEST_CASE("without anybody to tell, failures are reported once per kind and counted at the end",
          "[net]") {
  std::vector<std::string> notices;
  options chosen;
  chosen.on_notice = [&](std::string_view line) { notices.emplace_back(line); };
  run(chosen, [&] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint where = listener.local_endpoint();
    auto serving = spin([&] {
      listener.serve([](tcp_stream peer) {
        const std::string text = read_text(peer);
        if (text == "r") throw std::runtime_error("boom");
        if (text == "l") throw std::logic_error("bang");
        throw 42;
      });
    });
    for (const char* kind : {"r", "l", "r", "i", "r", "l"}) {
      tcp_stream peer = tcp_stream::connect(where);
      peer.write_all(bytes_of(kind));
      CHECK(read_to_end(peer).empty());
    }
    CHECK(notices.size() == 3);
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
  });
  const auto count = [&](std::string_view text) {
    return std::count_if(notices.begin(), notices.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  CHECK(count("boom") == 1);
  CHECK(count("bang") == 1);
  CHECK(count("int") == 1);
  CHECK(count("runtime_error: 3 in all") == 1);
  CHECK(count("logic_error: 2 in all") == 1);
  CHECK(notices.size() == 5);
}

TEST_CASE("a served fiber that is cancelled is no failure", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    int failures = 0;
    fiber_ref handler;
    auto serving = spin([&] {
      listener.serve(
          [&](tcp_stream peer) {
            handler = current();
            read_text(peer);
          },
          [&](const std::exception_ptr&) { ++failures; });
    });
    tcp_stream first = tcp_stream::connect(listener.local_endpoint());
    while (!handler || handler.state() != fiber_state::waiting) snooze();
    handler.cancel();
    CHECK(read_to_end(first).empty());
    tcp_stream second = tcp_stream::connect(listener.local_endpoint());
    const fiber_ref before = handler;
    while (handler == before) snooze();
    CHECK(failures == 0);
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
    CHECK(failures == 0);
  });
}

TEST_CASE("serve refuses a listener on which another thread accepts", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    motet::thread there([&] { listener.accept(); });
    there.call([] {});  // runs when the thread's function waits
    CHECK_THROWS_AS(listener.serve([](tcp_stream) {}), std::logic_error);
    there.cancel();
    CHECK_THROWS_AS(there.await(), fiber_cancelled);
  });
}

TEST_CASE("a deadline ends serve once every connection's clean-up has run", "[net]") {
  struct farewell {
    int& open;
    int& closed;
    farewell(int& o, int& c) : open(o), closed(c) { ++open; }
    farewell(const farewell&) = delete;
    farewell& operator=(const farewell&) = delete;
    ~farewell() {
      snooze();  // clean-up may switch
      ++closed;
    }
  };
  for (const bool by_deadline : {true, false}) {
    run([&] {
      tcp_listener listener(endpoint::loopback(0));
      const endpoint where = listener.local_endpoint();
      std::vector<tcp_stream> clients;
      for (int i = 0; i < 50; ++i) clients.push_back(tcp_stream::connect(where));
      int opened = 0;
      int closed = 0;
      const auto serve_all = [&] {
        listener.serve([&](tcp_stream peer) {
          const farewell guard(opened, closed);
          read_text(peer);
        });
      };
      if (by_deadline) {
        CHECK_FALSE(move_on_after(10ms, serve_all));
        CHECK(opened > 0);
      } else {
        auto serving = spin(serve_all);
        while (opened < 50) snooze();
        serving.cancel();
        CHECK_THROWS_AS(serving.await(), fiber_cancelled);
      }
      CHECK(closed == opened);
      listener.close();
      for (tcp_stream& each : clients) {
        std::error_code error;
        std::byte byte[1];
        CHECK(each.read(byte, error) == 0);
      }
    });
  }
}

TEST_CASE("a handler that fails while serve ends is reported too", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::vector<std::string> failures;
    auto serving = spin([&] {
      listener.serve(
          [](tcp_stream peer) {
            try {
              read_text(peer);
            } catch (const cancelled&) {
              throw std::runtime_error("on the way out");
            }
          },
          [&](const std::exception_ptr& error) {
            try {
              std::rethrow_exception(error);
            } catch (const std::runtime_error& e) {
              failures.emplace_back(e.what());
            }
          });
    });
    tcp_stream first = tcp_stream::connect(listener.local_endpoint());
    tcp_stream second = tcp_stream::connect(listener.local_endpoint());
    for (int i = 0; i < 300; ++i) snooze();
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
    CHECK(failures == std::vector<std::string>(2, "on the way out"));
  });
}

TEST_CASE("a connection taken at the moment serve ends is closed, never lost", "[net]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    const std::size_t rounds = testing::scaled(2'000, testing::under_tsan ? 100 : 500);
    for (std::size_t round = 0; round < rounds; ++round) {
      tcp_listener listener(endpoint::loopback(0));
      auto serving = spin([&] { listener.serve(echo); });
      until_waiting(serving);
      tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
      for (std::size_t i = 0; i < round % 8; ++i) snooze();
      serving.cancel();
      try {
        serving.await();
      } catch (const fiber_cancelled&) {
      }
      listener.close();
      std::error_code error;
      std::byte byte[1];
      REQUIRE(peer.read(byte, error) == 0);
    }
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("of a thousand connections one is reset in mid-message and the others go on", "[net]") {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit raised{std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 4'096)),
                      limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  const std::size_t fitting = raised.rlim_cur >= 2'200 ? 1'000 : raised.rlim_cur / 2 - 50;
  const std::size_t count = testing::under_tsan ? std::min<std::size_t>(fitting, 200) : fitting;
  run([&] {
    tcp_listener listener(endpoint::loopback(0), 4'096);
    const endpoint where = listener.local_endpoint();
    std::vector<std::string> failures;
    auto serving = spin([&] {
      listener.serve(
          [](tcp_stream peer) {
            std::array<std::byte, 8> message;
            for (;;) {
              for (std::size_t had = 0; had < message.size();) {
                const std::size_t size = peer.read(std::span(message).subspan(had));
                if (size == 0) return;
                had += size;
              }
              peer.write_all(message);
            }
          },
          [&](const std::exception_ptr& error) {
            failures.push_back(error_of([&] { std::rethrow_exception(error); }).message());
          });
    });
    std::size_t right = 0;
    std::size_t connected = 0;
    group clients;
    for (std::size_t i = 0; i < count; ++i) {
      clients.spin([&, i] {
        tcp_stream stream = tcp_stream::connect(where);
        if (!echoes(stream, "first...")) return;
        ++connected;
        while (connected < count) snooze();  // all of them are open at once
        if (i == count / 2) {
          stream.write_all(bytes_of("half"));
          reset_when_closed(stream);
          return;
        }
        if (echoes(stream, "second..") && echoes(stream, "third...")) ++right;
      });
    }
    clients.await_all();
    CHECK(connected == count);
    CHECK(right == count - 1);
    while (failures.empty()) snooze();
    CHECK(failures ==
          std::vector<std::string>{std::make_error_code(std::errc::connection_reset).message()});
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
  });
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_CASE("a server that runs out of descriptors waits and goes on when there are some", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint where = listener.local_endpoint();
    std::size_t served = 0;
    int failures = 0;
    auto serving = spin([&] {
      listener.serve(
          [&](tcp_stream peer) {
            ++served;
            echo(std::move(peer));
          },
          [&](const std::exception_ptr&) { ++failures; });
    });
    tcp_stream early = tcp_stream::connect(where);
    CHECK(echoes(early, "early"));

    std::vector<tcp_stream> late;
    {
      std::vector<fd> sockets;  // made while there are descriptors
      for (int i = 0; i < 3; ++i) sockets.push_back(testing::make_tcp_socket());
      const lower_limit few(RLIMIT_NOFILE, 3);
      for (fd& each : sockets) {
        io::connect(each.get(), where.address(), where.length());
        late.emplace_back(std::move(each));
      }
      sleep_for(10ms);
      CHECK(served <= 2);  // a ring's accept that was under way goes by the limit before
      CHECK(echoes(early, "meanwhile"));
    }
    for (tcp_stream& each : late) CHECK(echoes(each, "late"));
    CHECK(served == 4);
    CHECK(failures == 0);
    tcp_stream last = tcp_stream::connect(where);
    CHECK(echoes(last, "last"));
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
  });
}

TEST_CASE("a connection without a stack for its handler is closed, told of, and the only one",
          "[net]") {
  options chosen;
  chosen.stack_size = std::size_t{512} << 20;  // a mapping of its own for each handler
  run(chosen, [] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint where = listener.local_endpoint();
    int without_stack = 0;
    const std::size_t small = std::size_t{64} * 1024;
    auto serving = spin({.name = "server", .stack_size = small}, [&] {
      listener.serve(echo, [&](const std::exception_ptr& error) {
        try {
          std::rethrow_exception(error);
        } catch (const stack_unavailable&) {
          ++without_stack;
        }
      });
    });
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto mapped = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    {
      const lower_limit little(RLIMIT_AS, mapped + (std::size_t{64} << 20));
      tcp_stream refused = tcp_stream::connect(where);
      CHECK(read_to_end(refused).empty());
      CHECK(without_stack == 1);
    }
    tcp_stream fine = tcp_stream::connect(where);
    CHECK(echoes(fine, "fine"));
    CHECK(without_stack == 1);
    serving.cancel();
    CHECK_THROWS_AS(serving.await(), fiber_cancelled);
  });
}

// On several threads

namespace {

/// A port that nobody listens on just now.
endpoint free_port() {
  return tcp_listener(endpoint::loopback(0)).local_endpoint();
}

/// Waits until somebody listens there.
tcp_stream connect_when_served(const endpoint& where) {
  for (;;) {
    std::error_code error;
    tcp_stream made = tcp_stream::connect(where, error);
    if (!error) return made;
    snooze();
  }
}

}  // namespace

TEST_CASE("the threads of a pool share one port", "[net][pool]") {
  thread_pool pool(2);
  const endpoint where = free_port();
  std::mutex guarding;
  std::map<std::thread::id, int> served;
  group server;
  auto serving = server.spin([&] {
    tcp_listener::serve(pool, where, [&](tcp_stream peer) {
      {
        const std::lock_guard in(guarding);
        ++served[std::this_thread::get_id()];
      }
      echo(std::move(peer));
    });
  });
  {
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 100; ++i) clients.push_back(connect_when_served(where));
    for (tcp_stream& each : clients) CHECK(echoes(each, "to and fro"));
    const std::lock_guard in(guarding);
    CHECK(served.size() == 2);  // all on one: once in 2^99
    CHECK(served.count(std::this_thread::get_id()) == 0);
  }
  CHECK(pool.submit([] { return 1; }).get() == 1);
  serving.cancel();
  server.await_all();
  std::error_code refused;
  tcp_stream::connect(where, refused);
  CHECK(refused == std::errc::connection_refused);
}

TEST_CASE("a connection that fails on another thread is told there", "[net][pool]") {
  thread_pool pool(2);
  const endpoint where = free_port();
  std::atomic<int> told{0};
  group server;
  auto serving = server.spin([&] {
    tcp_listener::serve(
        pool, where, [](tcp_stream) { throw std::runtime_error("it fails"); },
        [&](const std::exception_ptr&) { ++told; });
  });
  for (int i = 0; i < 10; ++i) {
    tcp_stream client = connect_when_served(where);
    CHECK(read_to_end(client).empty());
  }
  serving.cancel();
  server.await_all();
  CHECK(told == 10);
}

TEST_CASE("who cannot serve on several threads says why", "[net][pool]") {
  thread_pool pool(2);
  const auto nobody = [](tcp_stream) {};
  CHECK_THROWS_AS(tcp_listener::serve(pool, endpoint::loopback(0), nobody), std::invalid_argument);
  tcp_listener alone(endpoint::loopback(0));
  const auto taken = error_of([&] { tcp_listener::serve(pool, alone.local_endpoint(), nobody); });
  CHECK(taken == std::errc::address_in_use);
  pool.stop();
  CHECK_THROWS_AS(tcp_listener::serve(pool, free_port(), nobody), executor_stopped);
}

TEST_CASE("stopping a pool ends what it serves", "[net][pool]") {
  thread_pool pool(2);
  const endpoint where = free_port();
  bool told = false;
  auto serving = spin([&] {
    try {
      tcp_listener::serve(pool, where, echo);
    } catch (const fiber_cancelled&) {
      told = true;
    } catch (const executor_stopped&) {
      told = true;  // a thread that had not begun to serve
    }
  });
  tcp_stream client = connect_when_served(where);
  CHECK(echoes(client, "still here"));
  pool.stop();
  serving.await();
  CHECK(told);
  CHECK(read_to_end(client).empty());
}
