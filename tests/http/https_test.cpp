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
  explicit safe_server(http::handler handler, http::serve_options options = {})
      : handler_(std::move(handler)), options_(std::move(options)) {
    tasks_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        http::serve_connection(tls::stream::accept(std::move(peer), context_), options_, handler_);
      });
    });
  }
  std::string at(const std::string& target) const {
    return "https://" + listener_.local_endpoint().to_string() + target;
  }
  std::string trusted() const { return issuer_.file(); }
  int connections = 0;

 private:
  authority issuer_;
  const tls::server_context context_{
      tls::server_options{.certificates = {issuer_.issue("server", {.names = "IP:127.0.0.1"})},
                          .protocols = {"http/1.1"}}};
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler handler_;
  const http::serve_options options_;
  group tasks_;
};

TEST_CASE("http::client keeps an https connection for the next request") {
  safe_server host(echo);
  http::client client({.trusted_file = host.trusted()});
  for (int round = 0; round < 5; ++round) CHECK(client.get(host.at("/a")).text() == "GET /a ");
  CHECK(client.post(host.at("/"), std::string(100'000, 'x'), "text/plain").text().size() ==
        100'007);
  CHECK(host.connections == 1);
}

TEST_CASE("http::client rejects a server whose certificate it does not trust") {
  safe_server host(echo);
  http::client client;
  CHECK(code_thrown_by([&] { client.get(host.at("/")); }) == tls::errc::bad_certificate);
}

TEST_CASE("http::client does not use a kept https connection that the server has closed") {
  http::serve_options options;
  options.idle = 5ms;
  safe_server host(echo, options);
  http::client client({.retries = 0, .trusted_file = host.trusted()});
  CHECK(client.post(host.at("/"), "1", "text/plain").text() == "POST / 1");
  sleep_for(50ms);
  CHECK(client.post(host.at("/"), "2", "text/plain").text() == "POST / 2");
  CHECK(host.connections == 2);
}

TEST_CASE("http::client follows no redirection from https to http") {
  safe_server host([](request&, response& answer) {
    answer.status(307).header("Location", "http://127.0.0.1:1/");
  });
  http::client client({.trusted_file = host.trusted()});
  CHECK_THROWS_AS(client.post(host.at("/"), "secret", "text/plain"), http::bad_reply);
}

TEST_CASE("http::websocket works over TLS") {
  safe_server host([](request& request, response& answer) {
    auto socket = http::websocket::accept(request, answer);
    while (const auto message = socket.read()) socket.write(message->data);
  });
  const std::string url = "wss" + host.at("/").substr(5);
  http::websocket_options options;
  options.trusted_file = host.trusted();
  http::websocket client = http::websocket::connect(url, options);
  for (const std::size_t size : {3, 100'000}) {
    client.write(std::string(size, 'x'));
    CHECK(client.read()->data == std::string(size, 'x'));
  }
  client.close();
  CHECK(client.ended().code == 1000);
  CHECK(code_thrown_by([&] { http::websocket::connect(url); }) == tls::errc::bad_certificate);
}

}  // namespace
