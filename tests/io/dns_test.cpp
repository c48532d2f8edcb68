// SPDX-License-Identifier: MIT
// Names of hosts. The resolver of this program knows some by heart, and takes its time over some.
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <motet/motet.hpp>
#include <motet/net/dns.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;

namespace {

std::atomic<bool> hangs{false};
std::atomic<int> hanging{0};
std::atomic<int> lookups{0};  // for names

int system_getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                       addrinfo** results) {
  static const auto real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, results);
}

/// Takes half a minute, unless the test is over before.
void hang() {
  ++hanging;
  for (int i = 0; i < 6'000 && hangs; ++i) std::this_thread::sleep_for(5ms);
  --hanging;
}

/// Two addresses, of which the first is nobody's.
int two_addresses(const char* service, const addrinfo* hints, addrinfo** results) {
  const int first = system_getaddrinfo("127.0.0.2", service, hints, results);
  return first != 0 ? first : system_getaddrinfo("127.0.0.1", service, hints, &(*results)->ai_next);
}

int resolve_for_test(std::string_view name, const char* service, const addrinfo* hints,
                     addrinfo** results) {
  ++lookups;
  if (name == "hangs.test") {
    hang();
    return EAI_AGAIN;
  }
  if (name == "slow.test") std::this_thread::sleep_for(500ms);
  if (name == "slow.test" || name == "quick.test") {
    return system_getaddrinfo("127.0.0.1", service, hints, results);
  }
  if (name == "two.test") return two_addresses(service, hints, results);
  if (name == "busy.test") return EAI_AGAIN;
  if (name == "crowded.test") {
    errno = EMFILE;
    return EAI_SYSTEM;
  }
  return EAI_NONAME;
}

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** results) {
  const std::string_view name(host);
  if (!name.ends_with(".test") || (hints->ai_flags & AI_NUMERICHOST) != 0) {
    return system_getaddrinfo(host, service, hints, results);
  }
  return resolve_for_test(name, service, hints, results);
}

namespace {

/// "hangs.test" does, for as long as this lives.
class unreachable_server {
 public:
  unreachable_server() { hangs = true; }
  unreachable_server(const unreachable_server&) = delete;
  unreachable_server& operator=(const unreachable_server&) = delete;
  ~unreachable_server() {
    hangs = false;
    while (hanging > 0) std::this_thread::sleep_for(1ms);
  }
};

/// Returns: the least that one of a few calls takes, in the world's time.
template <typename F>
std::chrono::nanoseconds quickest(std::chrono::nanoseconds enough, F f) {
  auto best = std::chrono::nanoseconds::max();
  for (int attempt = 0; attempt < 8 && best > enough; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - start);
  }
  return best;
}

std::error_code error_of(std::string_view name) {
  try {
    dns::resolve(name, 80);
  } catch (const std::system_error& refused) {
    return refused.code();
  }
  return {};
}

}  // namespace

TEST_CASE("dns::resolve() returns endpoints with the port", "[dns]") {
  run([] {
    CHECK(dns::resolve("quick.test", 80) == std::vector{endpoint::loopback(80)});
    CHECK(dns::resolve("quick.test", "8080") == std::vector{endpoint::loopback(8080)});
    const std::vector<endpoint> two = dns::resolve("two.test", 7);
    REQUIRE(two.size() == 2);
    CHECK(two[0] == endpoint::parse("127.0.0.2:7"));
    CHECK(two[1] == endpoint::loopback(7));
  });
}

TEST_CASE("dns::resolve() does not look up numeric addresses", "[dns]") {
  run([] {
    lookups = 0;
    CHECK(dns::resolve("127.0.0.1", 80) == std::vector{endpoint::loopback(80)});
    CHECK(dns::resolve("::1", "443") == std::vector{endpoint::parse("[::1]:443")});
    CHECK(lookups == 0);
    CHECK(dns::resolve("quick.test", 1).size() == 1);
    CHECK(lookups == 1);
  });
}

TEST_CASE("dns::resolve() throws an error with the name that is unknown", "[dns]") {
  run([] {
    try {
      dns::resolve("nobody.test", 80);
      FAIL("it was resolved");
    } catch (const std::system_error& refused) {
      CHECK(std::string(refused.what()) == "resolve nobody.test: Name or service not known");
      CHECK(refused.code().value() == EAI_NONAME);
      CHECK(std::string(refused.code().category().name()) == "getaddrinfo");
    }
    CHECK(error_of("busy.test") == std::errc::resource_unavailable_try_again);
    CHECK(error_of("crowded.test") == std::errc::too_many_files_open);
    CHECK_THROWS_AS(tcp_stream::connect("nobody.test", 80), std::system_error);
  });
}

TEST_CASE("dns::resolve() rejects an invalid name or service", "[dns]") {
  run([] {
    using namespace std::string_view_literals;
    CHECK_THROWS_AS(dns::resolve("", 80), std::invalid_argument);
    CHECK_THROWS_AS(dns::resolve("quick.test\0.evil"sv, 80), std::invalid_argument);
    CHECK_THROWS_AS(dns::resolve("quick.test", ""), std::invalid_argument);
    CHECK_THROWS_AS(dns::resolve("quick.test", "80\0"sv), std::invalid_argument);
    for (const char* port : {"65536", "+80", "-1", " 80", "\t80"}) {
      CHECK_THROWS_AS(dns::resolve("127.0.0.1", port), std::invalid_argument);
    }
    CHECK_THROWS_AS(dns::resolve("quick.test", "there is no such service"), std::system_error);
  });
}

TEST_CASE("dns::resolve() does not stop other fibers while the resolver is slow", "[dns]") {
  int best = 0;
  for (int attempt = 0; attempt < 6 && best < 45; ++attempt) {
    run([&] {
      int ticks = 0;
      auto ticker = spin([&] { every(10ms, [&] { ++ticks; }); });
      CHECK(dns::resolve("slow.test", 80).size() == 1);
      best = std::max(best, ticks);
      ticker.cancel();
    });
  }
  CHECK(best >= 45);
}

TEST_CASE("dns::resolve() keeps a deadline whatever the resolver does", "[dns]") {
  const unreachable_server unreachable;
  run([] {
    const auto connect = [] { return tcp_stream::connect("hangs.test", 80); };
    const auto took =
        quickest(230ms, [&] { CHECK_THROWS_AS(with_timeout(200ms, connect), timed_out); });
    CHECK(took >= 199ms);
    CHECK(took <= 230ms);
  });
  CHECK(hanging > 0);
}

TEST_CASE("dns::resolve() that is cancelled leaves the resolver to itself", "[dns]") {
  const unreachable_server unreachable;
  run([] {
    auto fiber = spin([] { dns::resolve("hangs.test", 80); });
    while (hanging == 0) snooze();
    fiber.cancel();
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK(hanging == 1);
  });
}

TEST_CASE("tcp_stream::connect() tries one address after the other", "[dns]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const std::uint16_t port = listener.local_endpoint().port();
    tcp_stream client = tcp_stream::connect("two.test", port);
    tcp_stream server = listener.accept();
    CHECK(client.peer_endpoint() == listener.local_endpoint());
    client.write_all(testing::bytes_of("x"));
    std::byte byte{};
    CHECK(server.read({&byte, 1}) == 1);

    listener.close();
    try {
      tcp_stream::connect("two.test", port);
      FAIL("somebody else listens");
    } catch (const std::system_error& refused) {
      CHECK(refused.code() == std::errc::connection_refused);
      const std::string address = "(127.0.0.1:" + std::to_string(port) + ")";
      CHECK(std::string(refused.what()).find("connect to two.test " + address) == 0);
    }
  });
}

TEST_CASE("tcp_stream::connect() waits only a moment for an address that does not answer",
          "[dns]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const std::uint16_t port = listener.local_endpoint().port();
    // A listener with a full backlog answers nothing.
    const fd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const endpoint silent = endpoint::parse("127.0.0.2:" + std::to_string(port));
    REQUIRE(::bind(full.get(), silent.address(), silent.length()) == 0);
    REQUIRE(::listen(full.get(), 0) == 0);
    std::vector<fd> queue;
    for (int i = 0; i < 4; ++i) {
      queue.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(queue.back().get(), silent.address(), silent.length());
    }
    dns::resolve("two.test", port);
    const std::size_t descriptors = testing::open_descriptors();
    {
      tcp_stream client = tcp_stream::connect("two.test", port);
      CHECK(client.peer_endpoint() == listener.local_endpoint());
      CHECK(testing::open_descriptors() == descriptors + 1);
    }
    auto fiber = spin([&] { tcp_stream::connect("two.test", port); });
    testing::until_waiting(fiber);
    fiber.cancel();
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("dns::resolve() works on a thread without a runtime", "[dns]") {
  std::vector<endpoint> endpoints;
  std::thread plain([&] { endpoints = dns::resolve("quick.test", 80); });
  plain.join();
  CHECK(endpoints == std::vector{endpoint::loopback(80)});
}
