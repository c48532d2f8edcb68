// SPDX-License-Identifier: MIT
// A client that asks by https, and a server that answers by it.
#include <string>

#include "http/talk.hpp"
#include "tls/certificates.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

class safe_server {
 public:
  explicit safe_server(http::handler called, http::serve_options how = {})
      : called_(std::move(called)), how_(std::move(how)) {
    serving_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        http::serve_connection(tls::stream::accept(std::move(peer), context_), how_, called_);
      });
    });
  }
  std::string at(const std::string& target) const {
    return "https://" + listener_.local_endpoint().to_string() + target;
  }
  std::string trusted() const { return by_.file(); }
  int connections = 0;

 private:
  authority by_;
  const tls::server_context context_{tls::server_options{
      .certificates = {by_.issue("server", {.names = "IP:127.0.0.1"})}, .protocols = {"http/1.1"}}};
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler called_;
  const http::serve_options how_;
  group serving_;
};

TEST_CASE("a client asks by https, again and again on one connection") {
  safe_server one(echo);
  http::client client({.trusted_file = one.trusted()});
  for (int round = 0; round < 5; ++round) CHECK(client.get(one.at("/a")).text() == "GET /a ");
  CHECK(client.post(one.at("/"), std::string(100'000, 'x'), "text/plain").text().size() == 100'007);
  CHECK(one.connections == 1);
}

TEST_CASE("a client believes no server that it has no reason to") {
  safe_server one(echo);
  http::client client;
  CHECK(code_thrown_by([&] { client.get(one.at("/")); }) == tls::errc::bad_certificate);
}

TEST_CASE("a kept connection on which the server has said farewell is not used") {
  http::serve_options how;
  how.idle = 5ms;
  safe_server one(echo, how);
  http::client client({.retries = 0, .trusted_file = one.trusted()});
  CHECK(client.post(one.at("/"), "1", "text/plain").text() == "POST / 1");
  sleep_for(50ms);
  CHECK(client.post(one.at("/"), "2", "text/plain").text() == "POST / 2");
  CHECK(one.connections == 2);
}

TEST_CASE("nothing that was asked by https is asked again by http") {
  safe_server one([](request&, response& answer) {
    answer.status(307).header("Location", "http://127.0.0.1:1/");
  });
  http::client client({.trusted_file = one.trusted()});
  CHECK_THROWS_AS(client.post(one.at("/"), "secret", "text/plain"), http::bad_reply);
}

TEST_CASE("a WebSocket by TLS") {
  safe_server one([](request& asked, response& answer) {
    auto socket = http::websocket::accept(asked, answer);
    while (const auto message = socket.read()) socket.write(message->data);
  });
  const std::string at = "wss" + one.at("/").substr(5);
  http::websocket_options how;
  how.trusted_file = one.trusted();
  http::websocket client = http::websocket::connect(at, how);
  for (const std::size_t size : {3, 100'000}) {
    client.write(std::string(size, 'x'));
    CHECK(client.read()->data == std::string(size, 'x'));
  }
  client.close();
  CHECK(client.ended().code == 1000);
  CHECK(code_thrown_by([&] { http::websocket::connect(at); }) == tls::errc::bad_certificate);
}

}  // namespace
