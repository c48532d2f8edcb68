// SPDX-License-Identifier: MIT
// What an HTTP client does with servers of all kinds: kept connections, redirections, failures.
#include <array>
#include <map>
#include <string>

#include "fixtures.hpp"
#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// A server on a port of the loopback, until the test is over.
class server {
 public:
  explicit server(http::handler handler) : handler_(std::move(handler)) {
    tasks_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        http::serve_connection(std::move(peer), http::serve_options(), handler_);
      });
    });
  }
  std::string at(const std::string& target) const {
    return "http://" + listener_.local_endpoint().to_string() + target;
  }
  int connections = 0;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler handler_;
  group tasks_;
};

/// A server that answers each connection with a text, or closes it at once if that is empty.
class scripted_server {
 public:
  explicit scripted_server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    tasks_.spin([this] {
      for (const std::string& answer : answers_) {
        tcp_stream peer = listener_.accept();
        requests.push_back(read_text(peer, 4096));
        peer.write_all(answer);
      }
      sleep();
    });
  }
  std::string at(const std::string& target) const {
    return "http://" + listener_.local_endpoint().to_string() + target;
  }
  words requests;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const std::vector<std::string> answers_;
  group tasks_;
};

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_CASE("http::reply has a status, headers and a body") {
  const server host([](request& request, response& answer) {
    answer.status(201).header("X-Kind", "test");
    answer.write(std::string(request.method()) + ' ' + std::string(request.target()) + ' ');
    answer.write(request.header("host"));
  });
  http::client client;
  http::reply answer = client.get(host.at("/a?b=c"));
  CHECK(answer.status() == 201);
  CHECK(answer.header("x-kind") == "test");
  CHECK(answer.url() == host.at("/a?b=c"));
  CHECK(contains(answer.text(), "GET /a?b=c 127.0.0.1:"));
  CHECK(answer.text().empty());
}

TEST_CASE("http::client keeps a connection for the next request") {
  const server host(echo);
  http::client client;
  for (int round = 0; round < 5; ++round) CHECK(client.get(host.at("/")).text() == "GET / ");
  CHECK(host.connections == 1);
}

TEST_CASE("http::client closes a connection, and only that, if its reply is not read to the end") {
  const server host([](request&, response& answer) { answer.write(std::string(100000, 'x')); });
  http::client client;
  CHECK(client.get(host.at("/")).status() == 200);
  CHECK(client.get(host.at("/")).text().size() == 100000);
  CHECK(host.connections == 2);
}

TEST_CASE("http::client limits the connections to a host, and further calls wait") {
  int at_once = 0;
  int peak = 0;
  const server host([&](request&, response&) {
    peak = std::max(peak, ++at_once);
    sleep_for(1ms);
    --at_once;
  });
  http::client client({.connections_per_host = 3});
  group callers;
  for (int index = 0; index < 20; ++index) {
    callers.spin([&] { CHECK(client.get(host.at("/")).status() == 200); });
  }
  callers.await_all();
  CHECK(peak == 3);
  CHECK(host.connections == 3);
}

TEST_CASE("http::client sends a body with its length, or in chunks as it comes") {
  const server host([](request& request, response& answer) {
    answer.write(request.length().has_value() ? "length " : "chunks ");
    answer.write(std::string(request.header("content-type")) + ' ' + request.text());
  });
  http::client client;
  CHECK(client.post(host.at("/"), "a body", "text/plain").text() == "length text/plain a body");
  int pieces = 3;
  http::request_options options;
  options.body_from = [&](std::span<std::byte> room) -> std::size_t {
    if (pieces-- == 0) return 0;
    room[0] = std::byte{'p'};
    return 1;
  };
  CHECK(client.request("PUT", host.at("/"), options).text() == "chunks  ppp");
}

TEST_CASE("http::reply ends by its length, by a last chunk, or with its connection") {
  scripted_server host({
      ok("by length"),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nby \r\n6\r\nchunks\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\nby the end",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
          ok("after hints"),
      "HTTP/1.0 200 OK\r\n\r\nof old",
      "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
  });
  for (const char* body : {"by length", "by chunks", "by the end", "after hints", "of old", ""}) {
    http::client client;
    CHECK(client.get(host.at("/")).text() == body);
  }
}

TEST_CASE("http::reply to HEAD has no body, whatever its length says") {
  const server host([](request&, response& answer) { answer.write("12345"); });
  http::client client;
  http::reply answer = client.request("HEAD", host.at("/"));
  CHECK(answer.length() == 5u);
  CHECK(answer.text().empty());
  CHECK(client.get(host.at("/")).text() == "12345");
  CHECK(host.connections == 1);
}

TEST_CASE("http::reply::text() throws if the reply is cut off") {
  scripted_server host({
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nby \r\n",
      "HTTP/1.1 200 OK\r\nContent-Le",
  });
  http::client client;
  CHECK_THROWS_AS(client.get(host.at("/")).text(), unexpected_eof);
  CHECK_THROWS_AS(client.get(host.at("/")).text(), unexpected_eof);
  CHECK_THROWS_AS(client.get(host.at("/")).text(), unexpected_eof);
}

TEST_CASE("http::client throws bad_reply if the answer is no HTTP, ambiguous or too large") {
  scripted_server host({
      "SSH-2.0-OpenSSH\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
      "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: " + std::string(2000, 'x') + "\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      ok(std::string(101, 'x')),
  });
  http::client client({.head = 1000, .text = 100});
  for (int round = 0; round < 6; ++round) {
    CAPTURE(round);
    CHECK_THROWS_AS(client.get(host.at("/")).text(), http::bad_reply);
  }
}

TEST_CASE("http::client follows redirections, with the method that they ask for") {
  const server host([](request& request, response& answer) {
    const std::string target(request.target());
    if (target.starts_with("/to/")) {
      answer.status(std::stoi(target.substr(4))).header("Location", "../end?x");
      return;
    }
    answer.write(std::string(request.method()) + ' ' + target + ' ' + request.text());
  });
  http::client client;
  for (const char* status : {"301", "302", "303", "307", "308"}) {
    CHECK(client.get(host.at("/to/" + std::string(status))).text() == "GET /end?x ");
  }
  const auto post = [&](const char* status) {
    return client.post(host.at("/to/" + std::string(status)), "body", "text/plain").text();
  };
  CHECK(post("301") == "GET /end?x ");
  CHECK(post("302") == "GET /end?x ");
  CHECK(post("303") == "GET /end?x ");
  CHECK(post("307") == "POST /end?x body");
  CHECK(post("308") == "POST /end?x body");
  CHECK(client.get(host.at("/to/302")).url() == host.at("/end?x"));
  CHECK(host.connections == 1);
}

TEST_CASE("http::client limits redirections, and returns them if the limit is 0") {
  const server host(
      [](request&, response& answer) { answer.status(302).header("Location", "/again"); });
  http::client client({.redirects = 3});
  CHECK_THROWS_AS(client.get(host.at("/")), http::bad_reply);
  http::client curious({.redirects = 0});
  CHECK(curious.get(host.at("/")).header("location") == "/again");
}

TEST_CASE("http::client sends no secret of the first host to another") {
  std::string headers;
  const server second([&](request& request, response&) {
    headers = std::string(request.header("authorization")) + std::string(request.header("cookie")) +
              std::string(request.header("x-other"));
  });
  const server first([&](request& request, response& answer) {
    if (request.target() == "/") {
      answer.status(302).header("Location", "/same");
    } else {
      headers = std::string(request.header("authorization"));
      answer.status(302).header("Location", second.at("/"));
    }
  });
  http::request_options options;
  options.headers.set("Authorization", "secret");
  options.headers.set("Cookie", "secret");
  options.headers.set("X-Other", "told");
  http::client client;
  client.request("GET", first.at("/"), options);
  CHECK(headers == "told");
}

TEST_CASE("http::client repeats an idempotent request when its connection has failed") {
  scripted_server host({"", "", ok("third time"), ""});
  http::client client({.retries = 2});
  CHECK(client.get(host.at("/")).text() == "third time");
  CHECK(host.requests.size() == 3);
  CHECK_THROWS_AS(client.post(host.at("/"), "x", "text/plain"), std::system_error);
  CHECK(host.requests.size() == 4);
}

TEST_CASE("http::client does not use a kept connection that the server has closed") {
  scripted_server host({ok("first"), ok("second")});
  http::client client({.retries = 0});
  CHECK(client.get(host.at("/")).text() == "first");
  sleep_for(5ms);  // the script closes it
  CHECK(client.post(host.at("/"), "x", "text/plain").text() == "second");
}

TEST_CASE("http::client gives up on a server that takes too long") {
  const server slow([](request& request, response& answer) {
    if (request.target() == "/body") {
      answer.write("half");
      answer.flush();
    }
    sleep_for(1s);
  });
  http::client client({.first_byte = 10ms, .stall = 10ms});
  CHECK_THROWS_AS(client.get(slow.at("/")), timed_out);
  http::reply half = client.get(slow.at("/body"));
  CHECK_THROWS_AS(half.text(), timed_out);
  http::request_options patient;
  patient.headers.set("Request-Timeout", "60");
  const auto ask = [&] { client.request("GET", slow.at("/"), patient); };
  CHECK_THROWS_AS(with_timeout(1ms, ask), timed_out);
}

TEST_CASE("http::client sends the caller's time limit to the server, whose handler inherits it") {
  std::optional<clock::duration> remaining;
  const server host([&](request&, response&) { remaining = time_left(); });
  http::client client;
  client.get(host.at("/"));
  CHECK_FALSE(remaining.has_value());
  with_timeout(5s, [&] { client.get(host.at("/")); });
  REQUIRE(remaining.has_value());
  CHECK(*remaining <= 5s);
  CHECK(*remaining > 4s);
}

TEST_CASE("http::client rejects an address without http or https, without a host, or invalid") {
  http::client client;
  for (const char* address : {"", "a", "ftp://a/", "http://", "http:///a", "http://a:0/",
                              "http://a:65536/", "http://a:x/", "http://user@a/", "http://a/b c",
                              "http://a/\r\nX: y", "http://[::1/", "http://[::1]x/"}) {
    CAPTURE(address);
    CHECK_THROWS_AS(client.get(address), std::invalid_argument);
  }
  CHECK_THROWS_AS(client.request("G T", "http://a/"), std::invalid_argument);
}

TEST_CASE("http::client throws std::system_error if the host cannot be reached") {
  http::client client;
  const net::endpoint address = net::tcp_listener(net::endpoint::loopback(0)).local_endpoint();
  CHECK_THROWS_AS(client.get("http://" + address.to_string() + "/"), std::system_error);
}

/// A server that answers each connection's first request with a text, and keeps all open.
class patient_server {
 public:
  explicit patient_server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    tasks_.spin([this] {
      for (;;) {
        peers_.push_back(listener_.accept());
        read_text(peers_.back(), 1000);
        peers_.back().write_all(answers_.at(peers_.size() - 1));
      }
    });
  }
  std::string at(const std::string& target) const {
    return "http://" + listener_.local_endpoint().to_string() + target;
  }
  std::size_t connections() const { return peers_.size(); }

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const std::vector<std::string> answers_;
  std::vector<tcp_stream> peers_;
  group tasks_;
};

TEST_CASE("http::client drops bytes behind an answer") {
  patient_server host(
      {ok("fine") + ok("PAID"), "HTTP/1.1 204 No Content\r\n\r\n" + ok("PAID"), ok("right")});
  http::client client;
  CHECK(client.get(host.at("/")).text() == "fine");
  CHECK(client.get(host.at("/")).text().empty());
  CHECK(client.get(host.at("/")).text() == "right");
}

TEST_CASE("http::client does not reuse a connection whose request was sent in part") {
  const std::string no = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";
  patient_server host({no, no});
  http::client client({.stall = 20ms});
  CHECK(client.post(host.at("/"), std::string(20'000'000, 'x'), "text/plain").status() == 401);
  CHECK(client.get(host.at("/")).status() == 401);
  CHECK(host.connections() == 2);
}

TEST_CASE("http::client frees the place of a closed connection once its answer has been read") {
  const server host(
      [](request&, response& answer) { answer.header("Connection", "close").write("done"); });
  http::client client({.connections_per_host = 1});
  http::reply first = client.get(host.at("/"));
  CHECK(first.text() == "done");
  CHECK(with_timeout(1s, [&] { return client.get(host.at("/")).text(); }) == "done");
}

TEST_CASE("http::client rejects Content-Length and Transfer-Encoding from the caller") {
  http::client client;
  for (const char* name : {"Content-Length", "Transfer-Encoding"}) {
    http::request_options options;
    options.headers.set(name, "1");
    CHECK_THROWS_AS(client.request("POST", "http://127.0.0.1:1/", options), std::invalid_argument);
  }
  CHECK_THROWS_AS(http::client({.connections_per_host = 0}), std::invalid_argument);
}

TEST_CASE("http::client fails the request if its body fails") {
  const server host(echo);
  http::client client;
  http::request_options options;
  options.body_from = [](std::span<std::byte>) -> std::size_t {
    throw std::system_error(std::make_error_code(std::errc::io_error));
  };
  CHECK(code_thrown_by([&] { client.request("POST", host.at("/"), options); }) ==
        std::errc::io_error);
  options.body_from = [](std::span<std::byte> room) { return room.size() + 1; };
  CHECK_THROWS_AS(client.request("POST", host.at("/"), options), std::length_error);
}

TEST_CASE("http::client follows a redirection that is cut off, but none to another scheme") {
  const server target(echo);
  scripted_server host({
      "HTTP/1.1 302 Found\r\nLocation: " + target.at("/") + "\r\nContent-Length: 10\r\n\r\nhalf",
      "HTTP/1.1 302 Found\r\nLocation: mailto:you\r\nContent-Length: 0\r\n\r\n",
  });
  http::client client;
  CHECK(client.get(host.at("/")).text() == "GET / ");
  CHECK(client.get(host.at("/")).status() / 100 == 3);
}

TEST_CASE("http::client frees the connection of an interrupted call for the next") {
  const server host([](request& request, response& answer) {
    if (request.target() == "/slow") sleep_for(10s);
    answer.write("fine");
  });
  http::client client({.connections_per_host = 1});
  auto slow = spin([&] { client.get(host.at("/slow")); });
  sleep_for(2ms);
  auto next = spin([&] { return client.get(host.at("/")).text(); });
  snooze();
  slow.cancel();
  CHECK(next.await() == "fine");
}

}  // namespace
