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
  explicit server(http::handler called) : called_(std::move(called)) {
    serving_.spin([this] {
      listener_.serve([this](tcp_stream peer) {
        ++connections;
        http::serve_connection(std::move(peer), http::serve_options(), called_);
      });
    });
  }
  std::string at(const std::string& target) const {
    return "http://" + listener_.local_endpoint().to_string() + target;
  }
  int connections = 0;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler called_;
  group serving_;
};

/// A server that answers each connection with a text, or closes it at once if that is empty.
class scripted_server {
 public:
  explicit scripted_server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    serving_.spin([this] {
      for (const std::string& each : answers_) {
        tcp_stream peer = listener_.accept();
        asked.push_back(read_text(peer, 4096));
        peer.write_all(each);
      }
      sleep();
    });
  }
  std::string at(const std::string& target) const {
    return "http://" + listener_.local_endpoint().to_string() + target;
  }
  words asked;

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const std::vector<std::string> answers_;
  group serving_;
};

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_CASE("an answer has a status, headers and a body") {
  const server one([](request& asked, response& answer) {
    answer.status(201).header("X-Kind", "test");
    answer.write(std::string(asked.method()) + ' ' + std::string(asked.target()) + ' ');
    answer.write(asked.header("host"));
  });
  http::client client;
  http::reply answer = client.get(one.at("/a?b=c"));
  CHECK(answer.status() == 201);
  CHECK(answer.header("x-kind") == "test");
  CHECK(answer.url() == one.at("/a?b=c"));
  CHECK(contains(answer.text(), "GET /a?b=c 127.0.0.1:"));
  CHECK(answer.text().empty());
}

TEST_CASE("a connection serves one request after another") {
  const server one(echo);
  http::client client;
  for (int round = 0; round < 5; ++round) CHECK(client.get(one.at("/")).text() == "GET / ");
  CHECK(one.connections == 1);
}

TEST_CASE("a reply that is left early costs its connection, and only that") {
  const server one([](request&, response& answer) { answer.write(std::string(100000, 'x')); });
  http::client client;
  CHECK(client.get(one.at("/")).status() == 200);
  CHECK(client.get(one.at("/")).text().size() == 100000);
  CHECK(one.connections == 2);
}

TEST_CASE("there are so many connections to a host, and further calls wait for one") {
  int at_once = 0;
  int most = 0;
  const server one([&](request&, response&) {
    most = std::max(most, ++at_once);
    sleep_for(1ms);
    --at_once;
  });
  http::client client({.connections_per_host = 3});
  group all;
  for (int index = 0; index < 20; ++index) {
    all.spin([&] { CHECK(client.get(one.at("/")).status() == 200); });
  }
  all.await_all();
  CHECK(most == 3);
  CHECK(one.connections == 3);
}

TEST_CASE("a body is sent with its length, or in chunks as it comes") {
  const server one([](request& asked, response& answer) {
    answer.write(asked.length().has_value() ? "length " : "chunks ");
    answer.write(std::string(asked.header("content-type")) + ' ' + asked.text());
  });
  http::client client;
  CHECK(client.post(one.at("/"), "a body", "text/plain").text() == "length text/plain a body");
  int pieces = 3;
  http::request_options how;
  how.body_from = [&](std::span<std::byte> room) -> std::size_t {
    if (pieces-- == 0) return 0;
    room[0] = std::byte{'p'};
    return 1;
  };
  CHECK(client.request("PUT", one.at("/"), how).text() == "chunks  ppp");
}

TEST_CASE("answers end by their length, by a last chunk, or with their connection") {
  scripted_server one({
      ok("by length"),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nby \r\n6\r\nchunks\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\nby the end",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
          ok("after hints"),
      "HTTP/1.0 200 OK\r\n\r\nof old",
      "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
  });
  for (const char* expected :
       {"by length", "by chunks", "by the end", "after hints", "of old", ""}) {
    http::client client;
    CHECK(client.get(one.at("/")).text() == expected);
  }
}

TEST_CASE("the answer to HEAD has no body, whatever its length says") {
  const server one([](request&, response& answer) { answer.write("12345"); });
  http::client client;
  http::reply answer = client.request("HEAD", one.at("/"));
  CHECK(answer.length() == 5u);
  CHECK(answer.text().empty());
  CHECK(client.get(one.at("/")).text() == "12345");
  CHECK(one.connections == 1);
}

TEST_CASE("an answer that is cut off is no answer") {
  scripted_server one({
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nby \r\n",
      "HTTP/1.1 200 OK\r\nContent-Le",
  });
  http::client client;
  CHECK_THROWS_AS(client.get(one.at("/")).text(), unexpected_eof);
  CHECK_THROWS_AS(client.get(one.at("/")).text(), unexpected_eof);
  CHECK_THROWS_AS(client.get(one.at("/")).text(), unexpected_eof);
}

TEST_CASE("what is no HTTP, or two answers in one, is a bad reply") {
  scripted_server one({
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
    CHECK_THROWS_AS(client.get(one.at("/")).text(), http::bad_reply);
  }
}

TEST_CASE("redirections are followed, with the method that they ask for") {
  const server one([](request& asked, response& answer) {
    const std::string target(asked.target());
    if (target.starts_with("/to/")) {
      answer.status(std::stoi(target.substr(4))).header("Location", "../end?x");
      return;
    }
    answer.write(std::string(asked.method()) + ' ' + target + ' ' + asked.text());
  });
  http::client client;
  for (const char* status : {"301", "302", "303", "307", "308"}) {
    CHECK(client.get(one.at("/to/" + std::string(status))).text() == "GET /end?x ");
  }
  const auto post = [&](const char* status) {
    return client.post(one.at("/to/" + std::string(status)), "body", "text/plain").text();
  };
  CHECK(post("301") == "GET /end?x ");
  CHECK(post("302") == "GET /end?x ");
  CHECK(post("303") == "GET /end?x ");
  CHECK(post("307") == "POST /end?x body");
  CHECK(post("308") == "POST /end?x body");
  CHECK(client.get(one.at("/to/302")).url() == one.at("/end?x"));
  CHECK(one.connections == 1);
}

TEST_CASE("redirections that go round end, and may be left to the caller") {
  const server one(
      [](request&, response& answer) { answer.status(302).header("Location", "/again"); });
  http::client client({.redirects = 3});
  CHECK_THROWS_AS(client.get(one.at("/")), http::bad_reply);
  http::client curious({.redirects = 0});
  CHECK(curious.get(one.at("/")).header("location") == "/again");
}

TEST_CASE("another host is told no secret of the first") {
  std::string seen;
  const server second([&](request& asked, response&) {
    seen = std::string(asked.header("authorization")) + std::string(asked.header("cookie")) +
           std::string(asked.header("x-other"));
  });
  const server first([&](request& asked, response& answer) {
    if (asked.target() == "/") {
      answer.status(302).header("Location", "/same");
    } else {
      seen = std::string(asked.header("authorization"));
      answer.status(302).header("Location", second.at("/"));
    }
  });
  http::request_options how;
  how.headers.set("Authorization", "secret");
  how.headers.set("Cookie", "secret");
  how.headers.set("X-Other", "told");
  http::client client;
  client.request("GET", first.at("/"), how);
  CHECK(seen == "told");
}

TEST_CASE("a request that harms nobody is repeated when its connection has failed") {
  scripted_server one({"", "", ok("third time"), ""});
  http::client client({.retries = 2});
  CHECK(client.get(one.at("/")).text() == "third time");
  CHECK(one.asked.size() == 3);
  CHECK_THROWS_AS(client.post(one.at("/"), "x", "text/plain"), std::system_error);
  CHECK(one.asked.size() == 4);
}

TEST_CASE("a kept connection that the server has closed meanwhile is not used") {
  scripted_server one({ok("first"), ok("second")});
  http::client client({.retries = 0});
  CHECK(client.get(one.at("/")).text() == "first");
  sleep_for(5ms);  // the script closes it
  CHECK(client.post(one.at("/"), "x", "text/plain").text() == "second");
}

TEST_CASE("a server that takes too long is left") {
  const server slow([](request& asked, response& answer) {
    if (asked.target() == "/body") {
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

TEST_CASE("a time limit round a call is told to the server, whose handler has it too") {
  std::optional<clock::duration> left;
  const server one([&](request&, response&) { left = time_left(); });
  http::client client;
  client.get(one.at("/"));
  CHECK_FALSE(left.has_value());
  with_timeout(5s, [&] { client.get(one.at("/")); });
  REQUIRE(left.has_value());
  CHECK(*left <= 5s);
  CHECK(*left > 4s);
}

TEST_CASE("an address is http or https, with a host, and without what would end its line") {
  http::client client;
  for (const char* address : {"", "a", "ftp://a/", "http://", "http:///a", "http://a:0/",
                              "http://a:65536/", "http://a:x/", "http://user@a/", "http://a/b c",
                              "http://a/\r\nX: y", "http://[::1/", "http://[::1]x/"}) {
    CAPTURE(address);
    CHECK_THROWS_AS(client.get(address), std::invalid_argument);
  }
  CHECK_THROWS_AS(client.request("G T", "http://a/"), std::invalid_argument);
}

TEST_CASE("a host that cannot be reached is an error of the connection") {
  http::client client;
  const net::endpoint nobody = net::tcp_listener(net::endpoint::loopback(0)).local_endpoint();
  CHECK_THROWS_AS(client.get("http://" + nobody.to_string() + "/"), std::system_error);
}

/// A server that answers each connection's first request with a text, and keeps all open.
class patient_server {
 public:
  explicit patient_server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    serving_.spin([this] {
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
  group serving_;
};

TEST_CASE("what comes behind an answer is not the next one") {
  patient_server one(
      {ok("fine") + ok("PAID"), "HTTP/1.1 204 No Content\r\n\r\n" + ok("PAID"), ok("right")});
  http::client client;
  CHECK(client.get(one.at("/")).text() == "fine");
  CHECK(client.get(one.at("/")).text().empty());
  CHECK(client.get(one.at("/")).text() == "right");
}

TEST_CASE("a connection whose request was sent in part only is not used for another") {
  const std::string no = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";
  patient_server one({no, no});
  http::client client({.stall = 20ms});
  CHECK(client.post(one.at("/"), std::string(20'000'000, 'x'), "text/plain").status() == 401);
  CHECK(client.get(one.at("/")).status() == 401);
  CHECK(one.connections() == 2);
}

TEST_CASE("a connection that is not kept gives its place when its answer has been read") {
  const server one(
      [](request&, response& answer) { answer.header("Connection", "close").write("done"); });
  http::client client({.connections_per_host = 1});
  http::reply first = client.get(one.at("/"));
  CHECK(first.text() == "done");
  CHECK(with_timeout(1s, [&] { return client.get(one.at("/")).text(); }) == "done");
}

TEST_CASE("where a body ends is not for a caller to say") {
  http::client client;
  for (const char* name : {"Content-Length", "Transfer-Encoding"}) {
    http::request_options how;
    how.headers.set(name, "1");
    CHECK_THROWS_AS(client.request("POST", "http://127.0.0.1:1/", how), std::invalid_argument);
  }
  CHECK_THROWS_AS(http::client({.connections_per_host = 0}), std::invalid_argument);
}

TEST_CASE("a body that fails as it comes fails the request") {
  const server one(echo);
  http::client client;
  http::request_options how;
  how.body_from = [](std::span<std::byte>) -> std::size_t {
    throw std::system_error(std::make_error_code(std::errc::io_error));
  };
  CHECK(code_thrown_by([&] { client.request("POST", one.at("/"), how); }) == std::errc::io_error);
  how.body_from = [](std::span<std::byte> room) { return room.size() + 1; };
  CHECK_THROWS_AS(client.request("POST", one.at("/"), how), std::length_error);
}

TEST_CASE("a redirection that is cut off is followed, one to something else is not followed") {
  const server target(echo);
  scripted_server one({
      "HTTP/1.1 302 Found\r\nLocation: " + target.at("/") + "\r\nContent-Length: 10\r\n\r\nhalf",
      "HTTP/1.1 302 Found\r\nLocation: mailto:you\r\nContent-Length: 0\r\n\r\n",
  });
  http::client client;
  CHECK(client.get(one.at("/")).text() == "GET / ");
  CHECK(client.get(one.at("/")).status() / 100 == 3);
}

TEST_CASE("a call that is interrupted gives its place to the next") {
  const server one([](request& asked, response& answer) {
    if (asked.target() == "/slow") sleep_for(10s);
    answer.write("fine");
  });
  http::client client({.connections_per_host = 1});
  auto slow = spin([&] { client.get(one.at("/slow")); });
  sleep_for(2ms);
  auto next = spin([&] { return client.get(one.at("/")).text(); });
  snooze();
  slow.cancel();
  CHECK(next.await() == "fine");
}

}  // namespace
