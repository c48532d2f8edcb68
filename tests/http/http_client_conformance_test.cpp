// SPDX-License-Identifier: MIT
// What RFC 9110 and RFC 9112 demand of a client, where no other test shows it: see
// docs/http_conformance.md.
#include <string>
#include <vector>

#include "http/talk.hpp"

namespace {

using namespace testing;

/// A server that answers one request after another with the next text, on whatever connection the
/// request comes.
class raw_server {
 public:
  explicit raw_server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    tasks_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        for (;;) {
          const std::string text = read_text(peer, 65'536);
          if (text.empty()) return;
          requests.push_back(text);
          peer.write_all(answers_.at(requests.size() - 1));
        }
      });
    });
  }
  std::string authority() const { return listener_.local_endpoint().to_string(); }
  std::string at(const std::string& target) const { return "http://" + authority() + target; }

  int connections = 0;
  std::vector<std::string> requests;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const std::vector<std::string> answers_;
  group tasks_;
};

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_CASE("http::client sends an origin-form target, the authority as Host, and nothing else") {
  struct form {
    const char* address;
    const char* target;
  };
  for (const form& test : {form{"", "/"}, form{"/", "/"}, form{"?a=b", "/?a=b"}, form{"#f", "/"},
                           form{"/a%20b;c?d/?#e", "/a%20b;c?d/?"}}) {
    CAPTURE(test.address);
    raw_server server({ok});
    http::client client;
    CHECK(client.get(server.at(test.address)).text() == "ok");
    CHECK(server.requests == std::vector<std::string>{"GET " + std::string(test.target) +
                                                      " HTTP/1.1\r\nHost: " + server.authority() +
                                                      "\r\nUser-Agent: motet\r\n\r\n"});
  }
}

TEST_CASE("http::client sends the length of a body, whatever the method") {
  for (const char* method : {"GET", "DELETE", "PATCH", "OPTIONS", "QUERY"}) {
    CAPTURE(method);
    raw_server server({ok});
    http::client client;
    client.request(method, server.at("/"), {.body = "body"});
    REQUIRE(server.requests.size() == 1);
    CHECK(server.requests[0].ends_with("\r\nContent-Length: 4\r\n\r\nbody"));
    CHECK_FALSE(contains(server.requests[0], "Transfer-Encoding"));
  }
}

TEST_CASE("http::client discards an answer with invalid framing or fields, with its connection") {
  for (const std::string& head : {
           std::string("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551618\r\n"),
           std::string("HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n"),
           std::string("HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n"),
           std::string("HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n", 44),
           std::string("HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 2\r\n"),
       }) {
    CAPTURE(head);
    raw_server server({head + "\r\nok", ok});
    http::client client;
    CHECK_THROWS_AS(client.get(server.at("/")), http::bad_reply);
    CHECK(client.get(server.at("/")).text() == "ok");
    CHECK(server.connections == 2);
  }
}

TEST_CASE("http::client accepts an answer without a reason, or with an unknown status") {
  for (const char* line : {"200 ", "299 Odd", "399 Odd", "499 Odd", "599 Odd"}) {
    CAPTURE(line);
    const std::string head = std::string("HTTP/1.1 ") + line + "\r\nContent-Length: 2\r\n\r\n";
    raw_server server({"HTTP/1.1 199 Odd\r\n\r\n" + head + "ok"});
    http::client client;
    http::reply answer = client.get(server.at("/"));
    CHECK(answer.status() == std::stoi(line));
    CHECK(answer.text() == "ok");
  }
}

TEST_CASE("http::reply::headers() does not have the trailer fields") {
  raw_server server(
      {"HTTP/1.1 200 OK\r\nX: head\r\nTransfer-Encoding: chunked\r\n\r\n"
       "2;a=b\r\nok\r\n0\r\nX: late\r\nX-Late: 1\r\n\r\n"});
  http::client client;
  http::reply answer = client.get(server.at("/"));
  CHECK(answer.text() == "ok");
  CHECK(answer.headers().size() == 2);
  CHECK(answer.header("x") == "head");
  CHECK(answer.header("x-late").empty());
}

TEST_CASE("http::reply with status 304 has no body, whatever its length says") {
  raw_server server({"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", ok});
  http::client client;
  CHECK(client.get(server.at("/")).text().empty());
  CHECK(client.get(server.at("/")).text() == "ok");
  CHECK(server.connections == 1);
}

TEST_CASE("http::client closes a connection on which the server has sent close") {
  const std::string last = "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok";
  raw_server server({last, ok});
  http::client client;
  CHECK(client.get(server.at("/")).text() == "ok");
  CHECK(client.get(server.at("/")).text() == "ok");
  CHECK(server.connections == 2);
}

TEST_CASE("http::client does not follow a redirection without a host, or with userinfo") {
  for (const char* place : {"http:///a", "http://:80/a", "http://user@a/", "//user:word@a/"}) {
    CAPTURE(place);
    raw_server server(
        {"HTTP/1.1 301 X\r\nContent-Length: 0\r\nLocation: " + std::string(place) + "\r\n\r\n"});
    http::client client;
    const http::reply answer = client.get(server.at("/"));
    CHECK(answer.status() == 301);
    CHECK(answer.header("Location") == place);
    CHECK(server.requests.size() == 1);
  }
}

TEST_CASE("http::client follows a redirection with a space or a letter beyond ASCII") {
  for (const auto& [place, target] : {std::pair<std::string, std::string>{"/a b", "/a%20b"},
                                      {"/\xc3\xa9?\xc3\xa9", "/%C3%A9?%C3%A9"}}) {
    CAPTURE(place);
    raw_server server(
        {"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + place + "\r\n\r\n", ok});
    http::client client;
    CHECK(client.get(server.at("/")).text() == "ok");
    REQUIRE(server.requests.size() == 2);
    CHECK(server.requests[1].starts_with("GET " + target + " HTTP/1.1\r\n"));
  }
}

TEST_CASE("http::client keeps the fragment of the address if a redirection has none") {
  for (const auto& [place, address] : {std::pair<std::string, std::string>{"/b", "/b#part"},
                                       {"/b#other", "/b#other"},
                                       {"?q", "/a?q#part"},
                                       {"#", "/a#"},
                                       {"/b#a\tb", "/b"}}) {
    CAPTURE(place);
    raw_server server(
        {"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + place + "\r\n\r\n", ok});
    http::client client;
    CHECK(client.get(server.at("/a#part")).url() == server.at(address));
    REQUIRE(server.requests.size() == 2);
    CHECK_FALSE(contains(server.requests[0] + server.requests[1], "#"));
  }
}

TEST_CASE("http::client accepts folded fields, a later version and a bare status") {
  for (const std::string head : {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 2\r\n",
                                 "HTTP/1.1 200\r\nX: a b c\r\nContent-Length:\r\n 2\r\n",
                                 "HTTP/1.2 200 OK\r\nX: a b c\r\nContent-Length: 2\r\n"}) {
    CAPTURE(head);
    raw_server server({head + "\r\nok", ok});
    http::client client;
    http::reply answer = client.get(server.at("/"));
    CHECK(answer.status() == 200);
    CHECK(answer.header("X").starts_with("a "));
    CHECK(answer.header("X").ends_with("c"));
    CHECK(answer.text() == "ok");
  }
  raw_server server({"HTTP/1.1 020 OK\r\nContent-Length: 2\r\n\r\nok"});
  http::client client;
  CHECK_THROWS_AS(client.get(server.at("/")), http::bad_reply);
}

TEST_CASE("http::client closes a connection after a request with Connection: close") {
  raw_server server({ok, ok});
  http::client client;
  http::request_options options;
  options.headers.add("Connection", "x");
  options.headers.add("Connection", "te, Close");
  CHECK(client.request("GET", server.at("/"), options).text() == "ok");
  CHECK(client.get(server.at("/")).text() == "ok");
  CHECK(server.connections == 2);
}

TEST_CASE("http::client rejects CONNECT, and a body with TRACE") {
  http::client client;
  CHECK_THROWS_AS(client.request("CONNECT", "http://localhost/"), std::invalid_argument);
  CHECK_THROWS_AS(client.request("TRACE", "http://localhost/", {.body = "x"}),
                  std::invalid_argument);
}

}  // namespace
