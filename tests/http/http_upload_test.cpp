// SPDX-License-Identifier: MIT
// Long requests of a client, to servers that answer before they have all of them.
#include <array>
#include <chrono>
#include <string>

#include "fixtures.hpp"
#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// More than the kernel takes for both directions.
constexpr std::size_t much = std::size_t{15} << 20;

class server {
 public:
  explicit server(http::handler called) : called_(std::move(called)) {
    serving_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        http::serve_connection(std::move(peer), {.body = 2 * much}, called_);
      });
    });
  }
  std::string address() const { return "http://" + listener_.local_endpoint().to_string() + "/"; }
  int connections = 0;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler called_;
  group serving_;
};

void echo_in_parts(request& asked, response& answer) {
  std::vector<std::byte> room(65'536);
  while (const std::size_t size = asked.read(room)) {
    answer.write(std::span<const std::byte>(room).first(size));
    answer.flush();
  }
}

std::string numbered(std::size_t size) {
  std::string text(size, '.');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i / 7 % 26);
  return text;
}

/// What body_from gives: pieces of a text.
auto pieces_of(const std::string& text) {
  return [&text, given = std::size_t{0}](std::span<std::byte> room) mutable {
    const std::size_t size = std::min(room.size(), text.size() - given);
    std::memcpy(room.data(), text.data() + given, size);
    given += size;
    return size;
  };
}

}  // namespace

TEST_CASE("a client reads the answer while it sends the request") {
  const server one(echo_in_parts);
  http::client client;
  const std::string body = numbered(much);
  for (const bool streams : {false, true, false}) {
    http::request_options how;
    if (streams) {
      how.body_from = pieces_of(body);
    } else {
      how.body = body;
    }
    http::reply answer =
        with_timeout(20s, [&] { return client.request("POST", one.address(), how); });
    CHECK(answer.status() == 200);
    CHECK(answer.text() == body);
  }
  CHECK(one.connections == 1);
}

TEST_CASE("a client ends a request that is refused before all of it is sent") {
  const server one([](request&, response& answer) {
    answer.status(401);
    answer.write("no");
    answer.flush();
    sleep_for(5s);  // neither reads the body nor closes
  });
  http::client client;
  const std::string body = numbered(much);
  for (const bool streams : {false, true}) {
    http::request_options how;
    if (streams) {
      how.body_from = pieces_of(body);
    } else {
      how.body = body;
    }
    const auto begun = clock::now();
    CHECK(client.request("POST", one.address(), how).status() == 401);
    CHECK(clock::now() - begun < 2s);
  }
  CHECK(one.connections == 2);
}

TEST_CASE("a request that comes as it is made may have a length") {
  const server one([](request& asked, response& answer) {
    answer.write(asked.length().has_value() ? std::to_string(*asked.length()) + ' ' : "chunks ");
    answer.write(asked.text());
  });
  http::client client;
  const std::string body = "body";
  http::request_options how;
  how.body_from = pieces_of(body);
  how.headers.set("Content-Length", "4");
  CHECK(client.request("PUT", one.address(), how).text() == "4 body");
  for (const char* wrong : {"3", "5", "0"}) {
    CAPTURE(wrong);
    how.body_from = pieces_of(body);
    how.headers.set("Content-Length", wrong);
    CHECK_THROWS_AS(client.request("PUT", one.address(), how), std::length_error);
  }
  for (const char* none : {"", "-1", "4 ", "18446744073709551616"}) {
    CAPTURE(none);
    how.headers.set("Content-Length", none);
    CHECK_THROWS_AS(client.request("PUT", one.address(), how), std::invalid_argument);
  }
  how.body_from = pieces_of(body);
  how.headers.set("Content-Length", "4");
  CHECK(client.request("PUT", one.address(), how).text() == "4 body");
}
