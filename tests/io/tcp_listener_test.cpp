// SPDX-License-Identifier: MIT
// Listeners: ports, connections, and who accepts.
#include <sys/socket.h>

#include <cstring>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::error_of;
using testing::read_text;
using testing::read_to_end;
using testing::until_waiting;

TEST_CASE("tcp_listener::local_endpoint() is the port that the kernel chose", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    CHECK(address.port() != 0);
    auto acceptor = spin([&] { return listener.accept(); });
    until_waiting(acceptor);
    tcp_stream client = tcp_stream::connect(address);
    tcp_stream server = std::move(acceptor).await();
    CHECK(client.peer_endpoint() == address);
    CHECK(server.local_endpoint() == address);
    CHECK(server.peer_endpoint() == client.local_endpoint());
    client.write_all(bytes_of("hello"));
    CHECK(read_text(server) == "hello");
    server.write_all(bytes_of("bye"));
    server.shutdown(SHUT_WR);
    CHECK(read_to_end(client) == "bye");
    client.write_all(bytes_of("still open this way"));
    client.close();
    CHECK(read_to_end(server) == "still open this way");
  });
}

TEST_CASE("tcp_listener::accept() and tcp_stream::connect() have forms with an error code",
          "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::error_code error = std::make_error_code(std::errc::io_error);
    tcp_stream client = tcp_stream::connect(listener.local_endpoint(), error);
    CHECK_FALSE(error);
    error = std::make_error_code(std::errc::io_error);
    tcp_stream server = listener.accept(error);
    CHECK_FALSE(error);
    std::byte buffer[8];
    CHECK(client.write(bytes_of("ab"), error) == 2);
    client.write_all(bytes_of("cd"), error);
    CHECK_FALSE(error);
    client.shutdown(SHUT_WR);
    CHECK(server.read(std::span(buffer).first(4), error) > 0);
    while (server.read(buffer, error) != 0) {
    }
    CHECK_FALSE(error);

    const endpoint unused_address = endpoint::loopback(testing::unused_port());
    const tcp_stream refused = tcp_stream::connect(unused_address, error);
    CHECK(error == std::errc::connection_refused);
    CHECK(refused.native_handle() == -1);
    CHECK(error_of([&] { tcp_stream::connect(unused_address); }) == std::errc::connection_refused);
    listener.close();
    const tcp_stream stream = listener.accept(error);
    CHECK(error == bad_descriptor);
    CHECK(stream.native_handle() == -1);
  });
}

TEST_CASE("tcp_listener works with IPv6 as with IPv4", "[net]") {
  const fd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const endpoint loopback = endpoint::parse("[::1]:0");
  if (!probe || ::bind(probe.get(), loopback.address(), loopback.length()) != 0) {
    WARN("there is no IPv6 here");
    return;
  }
  run([&] {
    tcp_listener listener(loopback);
    tcp_stream client = tcp_stream::connect(listener.local_endpoint());
    tcp_stream server = listener.accept();
    CHECK(client.peer_endpoint() == listener.local_endpoint());
    client.write_all(bytes_of("six"));
    CHECK(read_text(server) == "six");
  });
}

TEST_CASE("tcp_listener throws an error with the address if it cannot listen", "[net]") {
  run([] {
    CHECK_THROWS_AS(tcp_listener(endpoint::loopback(0), {.backlog = 0}), std::invalid_argument);
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

TEST_CASE("tcp_listener::close() ends the fibers that accept", "[net]") {
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

TEST_CASE("tcp_listener lets fibers accept in turn, and no other thread close it", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::vector<int> order;
    std::vector<fiber<void>> acceptors;
    for (int i = 0; i < 3; ++i) {
      acceptors.push_back(spin([&, i] {
        listener.accept();
        order.push_back(i);
      }));
    }
    for (auto& acceptor : acceptors) until_waiting(acceptor);
    std::thread([&] { CHECK_THROWS_AS(listener.close(), std::logic_error); }).join();
    for (int i = 0; i < 2; ++i) {
      tcp_stream::connect(listener.local_endpoint());
      acceptors[static_cast<std::size_t>(i)].await();
    }
    CHECK(order == std::vector<int>{0, 1});
    listener.close();
    CHECK(error_of([&] { acceptors[2].await(); }) == bad_descriptor);
    CHECK(error_of([&] { listener.accept(); }) == bad_descriptor);
  });
}
