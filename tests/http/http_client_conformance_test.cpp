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
    serving_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        for (;;) {
          const std::string text = read_text(peer, 65'536);
          if (text.empty()) return;
          asked.push_back(text);
          peer.write_all(answers_.at(asked.size() - 1));
        }
      });
    });
  }
  std::string authority() const { return listener_.local_endpoint().to_string(); }
  std::string at(const std::string& target) const { return "http://" + authority() + target; }

  int connections = 0;
  std::vector<std::string> asked;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const std::vector<std::string> answers_;
  group serving_;
};

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_CASE("a request has an origin-form target, the authority as Host, and nothing around it") {
  struct form {
    const char* address;
    const char* target;
  };
  for (const form& each : {form{"", "/"}, form{"/", "/"}, form{"?a=b", "/?a=b"}, form{"#f", "/"},
                           form{"/a%20b;c?d/?#e", "/a%20b;c?d/?"}}) {
    CAPTURE(each.address);
    raw_server one({ok});
    http::client client;
    CHECK(client.get(one.at(each.address)).text() == "ok");
    CHECK(one.asked == std::vector<std::string>{"GET " + std::string(each.target) +
                                                " HTTP/1.1\r\nHost: " + one.authority() +
                                                "\r\nUser-Agent: motet\r\n\r\n"});
  }
}

TEST_CASE("a body has its length, whatever the method") {
  for (const char* method : {"GET", "DELETE", "PATCH", "OPTIONS", "QUERY"}) {
    CAPTURE(method);
    raw_server one({ok});
    http::client client;
    client.request(method, one.at("/"), {.body = "body"});
    REQUIRE(one.asked.size() == 1);
    CHECK(one.asked[0].ends_with("\r\nContent-Length: 4\r\n\r\nbody"));
    CHECK_FALSE(contains(one.asked[0], "Transfer-Encoding"));
  }
}

TEST_CASE("an answer with invalid framing or fields is discarded with its connection") {
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
    raw_server one({head + "\r\nok", ok});
    http::client client;
    CHECK_THROWS_AS(client.get(one.at("/")), http::bad_reply);
    CHECK(client.get(one.at("/")).text() == "ok");
    CHECK(one.connections == 2);
  }
}

TEST_CASE("an answer needs no reason, and its status need not be known") {
  for (const char* line : {"200 ", "299 Odd", "399 Odd", "499 Odd", "599 Odd"}) {
    CAPTURE(line);
    const std::string head = std::string("HTTP/1.1 ") + line + "\r\nContent-Length: 2\r\n\r\n";
    raw_server one({"HTTP/1.1 199 Odd\r\n\r\n" + head + "ok"});
    http::client client;
    http::reply answer = client.get(one.at("/"));
    CHECK(answer.status() == std::stoi(line));
    CHECK(answer.text() == "ok");
  }
}

TEST_CASE("the trailer fields of an answer are not merged into its header fields") {
  raw_server one(
      {"HTTP/1.1 200 OK\r\nX: head\r\nTransfer-Encoding: chunked\r\n\r\n"
       "2;a=b\r\nok\r\n0\r\nX: late\r\nX-Late: 1\r\n\r\n"});
  http::client client;
  http::reply answer = client.get(one.at("/"));
  CHECK(answer.text() == "ok");
  CHECK(answer.headers().size() == 2);
  CHECK(answer.header("x") == "head");
  CHECK(answer.header("x-late").empty());
}

TEST_CASE("304 has no body, whatever its length says") {
  raw_server one({"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", ok});
  http::client client;
  CHECK(client.get(one.at("/")).text().empty());
  CHECK(client.get(one.at("/")).text() == "ok");
  CHECK(one.connections == 1);
}

TEST_CASE("a connection on which the server has sent close is closed by the client") {
  const std::string last = "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok";
  raw_server one({last, ok});
  http::client client;
  CHECK(client.get(one.at("/")).text() == "ok");
  CHECK(client.get(one.at("/")).text() == "ok");
  CHECK(one.connections == 2);
}

TEST_CASE("a redirection to an address without a host, or with userinfo, is not followed") {
  for (const char* place : {"http:///a", "http://:80/a", "http://user@a/", "//user:word@a/"}) {
    CAPTURE(place);
    raw_server one(
        {"HTTP/1.1 301 X\r\nContent-Length: 0\r\nLocation: " + std::string(place) + "\r\n\r\n"});
    http::client client;
    const http::reply answer = client.get(one.at("/"));
    CHECK(answer.status() == 301);
    CHECK(answer.header("Location") == place);
    CHECK(one.asked.size() == 1);
  }
}

TEST_CASE("a redirection to an address with a space or a letter beyond ASCII is followed") {
  for (const auto& [place, target] : {std::pair<std::string, std::string>{"/a b", "/a%20b"},
                                      {"/\xc3\xa9?\xc3\xa9", "/%C3%A9?%C3%A9"}}) {
    CAPTURE(place);
    raw_server one({"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + place + "\r\n\r\n", ok});
    http::client client;
    CHECK(client.get(one.at("/")).text() == "ok");
    REQUIRE(one.asked.size() == 2);
    CHECK(one.asked[1].starts_with("GET " + target + " HTTP/1.1\r\n"));
  }
}

TEST_CASE("a redirection without a fragment inherits that of the address") {
  for (const auto& [place, address] : {std::pair<std::string, std::string>{"/b", "/b#part"},
                                       {"/b#other", "/b#other"},
                                       {"?q", "/a?q#part"},
                                       {"#", "/a#"},
                                       {"/b#a\tb", "/b"}}) {
    CAPTURE(place);
    raw_server one({"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + place + "\r\n\r\n", ok});
    http::client client;
    CHECK(client.get(one.at("/a#part")).url() == one.at(address));
    REQUIRE(one.asked.size() == 2);
    CHECK_FALSE(contains(one.asked[0] + one.asked[1], "#"));
  }
}

TEST_CASE("a response with folded fields, a later version or a bare status is understood") {
  for (const std::string head : {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 2\r\n",
                                 "HTTP/1.1 200\r\nX: a b c\r\nContent-Length:\r\n 2\r\n",
                                 "HTTP/1.2 200 OK\r\nX: a b c\r\nContent-Length: 2\r\n"}) {
    CAPTURE(head);
    raw_server one({head + "\r\nok", ok});
    http::client client;
    http::reply answer = client.get(one.at("/"));
    CHECK(answer.status() == 200);
    CHECK(answer.header("X").starts_with("a "));
    CHECK(answer.header("X").ends_with("c"));
    CHECK(answer.text() == "ok");
  }
  raw_server one({"HTTP/1.1 020 OK\r\nContent-Length: 2\r\n\r\nok"});
  http::client client;
  CHECK_THROWS_AS(client.get(one.at("/")), http::bad_reply);
}

TEST_CASE("a connection is closed after a request for which the caller has set close") {
  raw_server one({ok, ok});
  http::client client;
  http::request_options how;
  how.headers.add("Connection", "x");
  how.headers.add("Connection", "te, Close");
  CHECK(client.request("GET", one.at("/"), how).text() == "ok");
  CHECK(client.get(one.at("/")).text() == "ok");
  CHECK(one.connections == 2);
}

TEST_CASE("a client neither asks for a tunnel nor sends a body with TRACE") {
  http::client client;
  CHECK_THROWS_AS(client.request("CONNECT", "http://localhost/"), std::invalid_argument);
  CHECK_THROWS_AS(client.request("TRACE", "http://localhost/", {.body = "x"}),
                  std::invalid_argument);
}

}  // namespace
