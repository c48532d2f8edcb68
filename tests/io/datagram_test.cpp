// SPDX-License-Identifier: MIT
// Datagrams: of UDP and of Unix sockets, one by one and many at a time.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::datagram_slot;
using net::endpoint;
using net::outgoing_datagram;
using net::udp_socket;
using net::unix_datagram;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::error_of;
using testing::oops;
using testing::scratch_directory;
using testing::until_waiting;

namespace {

static_assert(std::is_nothrow_move_constructible_v<udp_socket>);
static_assert(std::is_nothrow_move_assignable_v<unix_datagram>);
static_assert(noexcept(std::declval<udp_socket&>().receive_from({},
                                                                std::declval<std::error_code&>())));

udp_socket on_loopback() {
  return udp_socket(endpoint::loopback(0));
}

template <typename Socket>
std::string receive(Socket& socket, std::size_t limit = 64) {
  std::vector<std::byte> buffer(limit);
  const net::received_datagram datagram = socket.receive_from(buffer);
  return testing::text_of(std::span(buffer).first(datagram.size)) +
         (datagram.truncated ? "..." : "");
}

/// Slots with room for 16 bytes each.
struct slots {
  explicit slots(std::size_t count) : rooms(count), items(count) {
    for (std::size_t i = 0; i < count; ++i) items[i].buffer = rooms[i];
  }
  std::string text(std::size_t i) const {
    return testing::text_of(std::span(rooms[i]).first(items[i].got.size));
  }
  std::vector<std::array<std::byte, 16>> rooms;
  std::vector<datagram_slot> items;
};

}  // namespace

TEST_CASE("udp_socket::receive_from() returns the sender's endpoint, to which send_to() answers",
          "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    auto responder = spin([&] {
      std::array<std::byte, 64> buffer{};
      const net::received_datagram datagram = server.receive_from(buffer);
      CHECK_FALSE(datagram.truncated);
      server.send_to(std::span(buffer).first(datagram.size), datagram.from);
    });
    until_waiting(responder);
    udp_socket client = on_loopback();
    client.send_to(bytes_of("ping"), server.local_endpoint());
    std::array<std::byte, 64> buffer{};
    const net::received_datagram answer = client.receive_from(buffer);
    CHECK(testing::text_of(std::span(buffer).first(answer.size)) == "ping");
    CHECK(answer.from == server.local_endpoint());
    responder.await();
  });
}

TEST_CASE("udp_socket::receive_from() returns an empty datagram, and truncates a long one",
          "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    udp_socket client = udp_socket::connect(server.local_endpoint());
    client.send({});
    client.send(bytes_of("twelve bytes"));
    client.send(bytes_of("next"));
    CHECK(receive(server).empty());
    CHECK(receive(server, 6) == "twelve...");
    CHECK(receive(server) == "next");
    const std::vector<std::byte> large(70'000);
    CHECK(error_of([&] { client.send(large); }) == std::errc::message_size);
    std::error_code error;
    client.send(large, error);
    CHECK(error == std::errc::message_size);
    client.send_to(bytes_of("x"), server.local_endpoint(), error);
    CHECK((!error || error == std::errc::already_connected));
  });
}

TEST_CASE("udp_socket::connect() hears its peer alone, and throws if the peer is gone", "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    udp_socket client = udp_socket::connect(server.local_endpoint());
    CHECK(client.peer_endpoint() == server.local_endpoint());
    udp_socket stranger = on_loopback();
    stranger.send_to(bytes_of("strange"), client.local_endpoint());
    server.send_to(bytes_of("known"), client.local_endpoint());
    CHECK(receive(client) == "known");
    server.close();
    client.send(bytes_of("anyone?"));
    CHECK(error_of([&] { receive(client); }) == std::errc::connection_refused);
  });
}

TEST_CASE("udp_socket::receive_from() and receive_many() lose nothing when interrupted", "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    auto receiver = spin([&] { return receive(server); });
    until_waiting(receiver);
    CHECK(receiver.raise(oops()));
    CHECK_THROWS_AS(receiver.await(), oops);
    slots many(4);
    auto batch = spin([&] { return server.receive_many(many.items); });
    until_waiting(batch);
    CHECK(batch.raise(oops()));
    CHECK_THROWS_AS(batch.await(), oops);
    on_loopback().send_to(bytes_of("kept"), server.local_endpoint());
    CHECK(receive(server) == "kept");
  });
}

TEST_CASE("udp_socket::send_many() and receive_many() pass many datagrams in one call", "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    udp_socket client = on_loopback();
    std::vector<std::string> texts;
    for (int i = 0; i < 100; ++i) texts.push_back("number " + std::to_string(i));
    std::vector<outgoing_datagram> letters;
    for (const std::string& text : texts) {
      letters.push_back({bytes_of(text), server.local_endpoint()});
    }
    std::vector<std::string> results;
    auto receiver = spin([&] {
      while (results.size() < texts.size()) {
        slots room(10);
        const std::size_t count = server.receive_many(room.items);
        CHECK(count >= 1);
        for (std::size_t i = 0; i < count; ++i) {
          CHECK(room.items[i].got.from == client.local_endpoint());
          results.push_back(room.text(i));
        }
      }
    });
    for (std::span rest(letters); !rest.empty();) rest = rest.subspan(client.send_many(rest));
    receiver.await();
    CHECK(results == texts);
    slots single(1);
    client.send_to(bytes_of("longer than sixteen bytes"), server.local_endpoint());
    CHECK(server.receive_many(single.items) == 1);
    CHECK(single.items[0].got.truncated);
    CHECK(single.text(0) == "longer than sixt");
    CHECK_THROWS_AS(server.receive_many({}), std::invalid_argument);
    CHECK_THROWS_AS(client.send_many({}), std::invalid_argument);
    std::vector<datagram_slot> too_many(1025);
    CHECK_THROWS_AS(server.receive_many(too_many), std::invalid_argument);
  });
}

TEST_CASE("udp_socket::close() ends its calls, release() keeps the descriptor open", "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    auto receiver = spin([&] { receive(server); });
    until_waiting(receiver);
    server.close();
    CHECK(error_of([&] { receiver.await(); }) == bad_descriptor);
    CHECK(error_of([&] { receive(server); }) == bad_descriptor);
    CHECK(error_of([&] { server.send(bytes_of("x")); }) == bad_descriptor);
    slots single(1);
    CHECK(error_of([&] { server.receive_many(single.items); }) == bad_descriptor);
    udp_socket second = on_loopback();
    const endpoint address = second.local_endpoint();
    udp_socket owner(second.release());
    CHECK(owner.local_endpoint() == address);
    CHECK(error_of([&] { udp_socket third(address); }) == std::errc::address_in_use);
  });
}

TEST_CASE("udp_socket may be moved while a fiber waits", "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    const endpoint address = server.local_endpoint();
    slots room(4);
    auto receiver = spin([&] { return server.receive_many(room.items); });
    until_waiting(receiver);
    udp_socket target = std::move(server);
    on_loopback().send_to(bytes_of("here"), address);
    CHECK(receiver.await() == 1);
    CHECK(room.text(0) == "here");
  });
}

TEST_CASE("udp_socket::receive_many() sees a time limit that has passed", "[udp]") {
  run([] {
    udp_socket server = on_loopback();
    for (int i = 0; i < 3; ++i) {
      on_loopback().send_to(bytes_of("kept"), server.local_endpoint());
    }
    slots room(1);
    CHECK_FALSE(move_on_after(1ms, [&] {
      const auto start = clock::now();
      while (clock::now() - start < 5ms) {
        if (testing::on_sim()) sleep_for(1ms);
      }
      server.receive_many(room.items);
    }));
    CHECK(receive(server) == "kept");
  });
}

TEST_CASE("unix_datagram::receive_many() accepts a sender with the longest path", "[unix]") {
  run([] {
    const scratch_directory root;
    const endpoint address = endpoint::unix_path(root.name() + "/socket");
    unix_datagram server(address);
    sockaddr_un longest{};
    longest.sun_family = AF_UNIX;
    const std::string name = root.name() + "/";
    std::fill(std::begin(longest.sun_path), std::end(longest.sun_path), 'x');
    std::copy(name.begin(), name.end(), std::begin(longest.sun_path));
    const fd odd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(odd.get(), reinterpret_cast<sockaddr*>(&longest), sizeof longest) == 0);
    unix_datagram fair = unix_datagram::connect(address);
    fair.send(bytes_of("first"));
    REQUIRE(::sendto(odd.get(), "odd", 3, 0, address.address(), address.length()) == 3);
    fair.send(bytes_of("last"));
    slots room(4);
    REQUIRE(server.receive_many(room.items) == 3);
    CHECK(room.text(1) == "odd");
    CHECK(room.items[1].got.from.to_string().size() == 5 + 108);
    CHECK(room.items[0].got.from == endpoint());
  });
}

TEST_CASE("unix_datagram::send_many() waits for a full receiver, and is not busy", "[unix]") {
  run([] {
    const scratch_directory root;
    const endpoint address = endpoint::unix_path(root.name() + "/socket");
    unix_datagram server(address);
    unix_datagram client(endpoint::unix_path(root.name() + "/client"));
    const std::vector<outgoing_datagram> letters(50, {bytes_of("letter"), address});
    int count = 0;
    auto sender = spin([&] {
      for (int i = 0; i < 10; ++i) count += static_cast<int>(client.send_many(letters));
    });
    sleep_for(20ms);
    const int count_before = count;
    sleep_for(20ms);
    CHECK(count == count_before);
    for (int i = 0; i < count_before || sender.state() != fiber_state::dead; ++i) {
      if (!move_on_after(50ms, [&] { receive(server); })) break;
    }
    sender.await();
    CHECK(count >= 10);
  });
}

TEST_CASE("udp_socket, unix_datagram and listeners reject an endpoint of another family", "[net]") {
  run([] {
    const endpoint local = endpoint::unix_path("/nowhere");
    CHECK_THROWS_AS(udp_socket(local), std::invalid_argument);
    CHECK_THROWS_AS(udp_socket::connect(local), std::invalid_argument);
    CHECK_THROWS_AS(net::tcp_listener(local), std::invalid_argument);
    CHECK_THROWS_AS(unix_datagram(endpoint::loopback(0)), std::invalid_argument);
    CHECK_THROWS_AS(unix_datagram::connect(endpoint::loopback(1)), std::invalid_argument);
    CHECK_THROWS_AS(net::unix_listener(endpoint::loopback(0)), std::invalid_argument);
  });
}

TEST_CASE("unix_datagram has a path, waits for room, and loses nothing", "[unix]") {
  run([] {
    const scratch_directory root;
    const endpoint address = endpoint::unix_path(root.name() + "/socket");
    {
      unix_datagram server(address);
      CHECK(error_of([&] { unix_datagram second(address); }) == std::errc::address_in_use);
      unix_datagram client = unix_datagram::connect(address);
      constexpr int count = 1'000;
      auto sender = spin([&] {
        for (int i = 0; i < count; ++i) client.send(bytes_of(std::to_string(i)));
      });
      until_waiting(sender);
      for (int i = 0; i < count; ++i) CHECK(receive(server) == std::to_string(i));
      sender.await();
      unix_datagram second_client(endpoint::unix_path(root.name() + "/client"));
      second_client.send_to(bytes_of("who?"), address);
      std::array<std::byte, 16> buffer{};
      const net::received_datagram datagram = server.receive_from(buffer);
      CHECK(datagram.from == second_client.local_endpoint());
      server.send_to(bytes_of("me"), datagram.from);
      CHECK(receive(second_client) == "me");
      CHECK(root.has("socket"));
      CHECK(root.has("client"));
    }
    CHECK_FALSE(root.has("socket"));
    CHECK_FALSE(root.has("client"));
    CHECK(error_of([&] { unix_datagram::connect(address); }) ==
          std::errc::no_such_file_or_directory);
  });
}
