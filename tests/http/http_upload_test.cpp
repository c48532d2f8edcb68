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
  explicit server(http::handler handler) : handler_(std::move(handler)) {
    tasks_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        http::serve_connection(std::move(peer), {.body = 2 * much}, handler_);
      });
    });
  }
  std::string address() const { return "http://" + listener_.local_endpoint().to_string() + "/"; }
  int connections = 0;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler handler_;
  group tasks_;
};

void echo_in_parts(request& request, response& answer) {
  std::vector<std::byte> room(65'536);
  while (const std::size_t size = request.read(room)) {
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
  return [&text, count = std::size_t{0}](std::span<std::byte> room) mutable {
    const std::size_t size = std::min(room.size(), text.size() - count);
    std::memcpy(room.data(), text.data() + count, size);
    count += size;
    return size;
  };
}

}  // namespace

TEST_CASE("http::client reads the answer while it sends the request") {
  const server host(echo_in_parts);
  http::client client;
  const std::string body = numbered(much);
  for (const bool streams : {false, true, false}) {
    http::request_options options;
    if (streams) {
      options.body_from = pieces_of(body);
    } else {
      options.body = body;
    }
    http::reply answer =
        with_timeout(20s, [&] { return client.request("POST", host.address(), options); });
    CHECK(answer.status() == 200);
    CHECK(answer.text() == body);
  }
  CHECK(host.connections == 1);
}

TEST_CASE("http::client stops sending a request that is refused") {
  const server host([](request&, response& answer) {
    answer.status(401);
    answer.write("no");
    answer.flush();
    sleep_for(5s);  // neither reads the body nor closes
  });
  http::client client;
  const std::string body = numbered(much);
  for (const bool streams : {false, true}) {
    http::request_options options;
    if (streams) {
      options.body_from = pieces_of(body);
    } else {
      options.body = body;
    }
    const auto start = clock::now();
    CHECK(client.request("POST", host.address(), options).status() == 401);
    CHECK(clock::now() - start < 2s);
  }
  CHECK(host.connections == 2);
}

TEST_CASE("http::request_options::body_from may have a Content-Length") {
  const server host([](request& request, response& answer) {
    answer.write(request.length().has_value() ? std::to_string(*request.length()) + ' '
                                              : "chunks ");
    answer.write(request.text());
  });
  http::client client;
  const std::string body = "body";
  http::request_options options;
  options.body_from = pieces_of(body);
  options.headers.set("Content-Length", "4");
  CHECK(client.request("PUT", host.address(), options).text() == "4 body");
  for (const char* wrong : {"3", "5", "0"}) {
    CAPTURE(wrong);
    options.body_from = pieces_of(body);
    options.headers.set("Content-Length", wrong);
    CHECK_THROWS_AS(client.request("PUT", host.address(), options), std::length_error);
  }
  for (const char* invalid_length : {"", "-1", "4 ", "18446744073709551616"}) {
    CAPTURE(invalid_length);
    options.headers.set("Content-Length", invalid_length);
    CHECK_THROWS_AS(client.request("PUT", host.address(), options), std::invalid_argument);
  }
  options.body_from = pieces_of(body);
  options.headers.set("Content-Length", "4");
  CHECK(client.request("PUT", host.address(), options).text() == "4 body");
}
