// SPDX-License-Identifier: MIT
// Endpoints: read from their texts, printed, and refused.
#include <net/if.h>
#include <sys/socket.h>

#include <cstring>
#include <motet/motet.hpp>
#include <new>
#include <string>

#include "catch.hpp"

using namespace motet;
using net::endpoint;

TEST_CASE("endpoint::parse() reads a text, and to_string() prints the same", "[net]") {
  for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80",
                           "[::]:0", "[2001:db8::1]:443", "[::ffff:1.2.3.4]:9"}) {
    INFO(text);
    const endpoint result = endpoint::parse(text);
    CHECK(result.to_string() == text);
    CHECK(result == endpoint::parse(text));
    CHECK(endpoint(result.address(), result.length()) == result);
  }
  CHECK(endpoint::parse("[2001:0db8:0:0::1]:7").to_string() == "[2001:db8::1]:7");
  CHECK(endpoint::parse("[fe80::1%1]:7").to_string() == "[fe80::1%1]:7");
  CHECK_FALSE(endpoint::parse("[fe80::1%1]:7") == endpoint::parse("[fe80::1%2]:7"));
  CHECK(endpoint::parse("[fe80::1%lo]:7").to_string() ==
        "[fe80::1%" + std::to_string(::if_nametoindex("lo")) + "]:7");
  for (const char* text :
       {"[fe80::1%]:7", "[fe80::1%no-such-link]:7", "[fe80::1%4294967296]:7", "127.0.0.1%1:7"}) {
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

TEST_CASE("endpoint does not depend on what its memory held before", "[net]") {
  alignas(endpoint) std::byte memory[sizeof(endpoint)];
  std::memset(memory, 0xff, sizeof memory);
  asm volatile("" : : "r"(memory) : "memory");  // they are really written
  const auto* result = ::new (static_cast<void*>(memory)) endpoint(endpoint::parse("[::1]:80"));
  sockaddr_in6 address{};
  REQUIRE(result->length() == sizeof address);
  std::memcpy(&address, result->address(), sizeof address);
  CHECK(address.sin6_scope_id == 0);
  CHECK(address.sin6_flowinfo == 0);
  CHECK(*result == endpoint::parse("[::1]:80"));
}

TEST_CASE("endpoint::parse() rejects a text that is no endpoint, with the reason", "[net]") {
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
    std::string message;
    try {
      (void)endpoint::parse(text);
    } catch (const std::invalid_argument& refused) {
      message = refused.what();
    }
    CHECK(message.find("\"" + std::string(text) + "\"") != std::string::npos);
    CHECK(message.size() > std::string(text).size() + 10);
  }
  using namespace std::string_view_literals;
  CHECK_THROWS_AS(endpoint::parse("127.0.0.1\0:80"sv), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::parse("[::1\0]:80"sv), std::invalid_argument);
}

TEST_CASE("endpoint rejects an address of another family, or one that is cut short", "[net]") {
  sockaddr netlink_address{};
  netlink_address.sa_family = AF_NETLINK;
  CHECK_THROWS_AS(endpoint(&netlink_address, sizeof netlink_address), std::invalid_argument);
  const endpoint whole = endpoint::parse("[::1]:80");
  CHECK_THROWS_AS(endpoint(whole.address(), whole.length() - 1), std::invalid_argument);
}

TEST_CASE("endpoint of a Unix socket has a path or an abstract name", "[net]") {
  const endpoint path = endpoint::unix_path("/run/motet.sock");
  CHECK(path.to_string() == "unix:/run/motet.sock");
  CHECK(path.port() == 0);
  CHECK(path.address()->sa_family == AF_UNIX);
  CHECK(endpoint::parse("unix:/run/motet.sock") == path);
  const endpoint abstract = endpoint::unix_abstract("motet");
  CHECK(abstract.to_string() == "unix:@motet");
  CHECK(endpoint::parse("unix:@motet") == abstract);
  CHECK_FALSE(abstract == endpoint::unix_path("motet"));
  CHECK_FALSE(path == endpoint::unix_path("/run/motet.soc"));
  CHECK_FALSE(path == endpoint::any(0));
  CHECK(endpoint::unix_path("@sock").to_string() == "unix:./@sock");
  CHECK(endpoint(path.address(), path.length()) == path);
  CHECK(endpoint(abstract.address(), abstract.length()) == abstract);
  sockaddr_un bare{};
  bare.sun_family = AF_UNIX;
  const auto* unnamed = reinterpret_cast<const sockaddr*>(&bare);
  CHECK(endpoint(unnamed, sizeof(sa_family_t)).to_string() == "unix:");
  CHECK(endpoint::unix_path(std::string(107, 'x')).to_string() == "unix:" + std::string(107, 'x'));
  CHECK(endpoint::unix_abstract(std::string(107, 'x')).length() == sizeof(sockaddr_un));
}

TEST_CASE("endpoint::unix_path() and unix_abstract() reject names that a socket cannot have",
          "[net]") {
  using namespace std::string_view_literals;
  CHECK_THROWS_AS(endpoint::unix_path(""), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::unix_path("a\0b"sv), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::unix_path(std::string(108, 'x')), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::unix_abstract(""), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::unix_abstract(std::string(108, 'x')), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::parse("unix:"), std::invalid_argument);
  CHECK_THROWS_AS(endpoint::parse("unix:@"), std::invalid_argument);
}
