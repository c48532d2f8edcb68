// SPDX-License-Identifier: MIT
// Answers to requests whose body nobody reads, and the end of a connection whose client still
// sends.
#include <chrono>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// A client's request with a body that comes later, if at all.
std::string post(const std::string& fields) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

void refuse_all(request&, response& answer) {
  answer.status(401);
}

/// Far less than the second for which a server waits for what a client still sends.
constexpr auto at_once = 500ms;

}  // namespace

TEST_CASE("http::response does not wait for a body that the handler does not read") {
  for (const char* fields : {"Transfer-Encoding: chunked\r\n", "Content-Length: 10\r\n"}) {
    CAPTURE(fields);
    served connection(&refuse_all);
    connection.say(post(fields));
    const auto start = clock::now();
    CHECK(contains(connection.hear(), "401"));
    CHECK(clock::now() - start < at_once);
    CHECK(connection.hear_out().empty());  // for the body does not come
    CHECK(clock::now() - start < 10s);
  }
}

TEST_CASE("http::serve() keeps the connection after a short body that the handler does not read") {
  served connection(&refuse_all);
  connection.say(post("Content-Length: 10\r\n"));
  CHECK(contains(connection.hear(), "401"));
  connection.say("0123456789" + get("/next"));
  CHECK(contains(connection.hear(), "401"));
  connection.say(post("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n");
  CHECK(contains(connection.hear(), "401"));
  connection.say("0\r\n\r\n" + get("/next"));
  CHECK(contains(connection.hear(), "401"));
}

TEST_CASE("http::serve() keeps a connection whose client does not wait for 100 Continue") {
  const std::string fields = "Expect: 100-continue\r\nContent-Length: 4\r\n";
  served connection(&refuse_all);
  connection.say(post(fields) + "body");
  CHECK(contains(connection.hear(), "401"));
  connection.say("POST / HTTP/1.0\r\nConnection: keep-alive\r\n" + fields + "\r\n");
  CHECK(contains(connection.hear(), "401"));
  connection.say("body" + get("/next"));
  CHECK(contains(connection.hear(), "401"));
}

TEST_CASE("http::serve() closes after a long or an invalid body that the handler does not read") {
  for (const std::string& body : {std::string("Content-Length: 100000\r\n\r\n"),
                                  std::string("Transfer-Encoding: chunked\r\n\r\nno chunk\r\n")}) {
    CAPTURE(body);
    served connection(&refuse_all);
    connection.say("POST / HTTP/1.1\r\nHost: a\r\n" + body);
    CHECK(contains(connection.hear_out(), "401"));
  }
}

TEST_CASE("http::serve() answers 413 to a client that sends all of a body that is too large") {
  http::serve_options options;
  options.body = 1'000'000;
  const std::string body(8 * options.body, 'x');
  served connection(echo, options);
  connection.say(post("Content-Length: " + std::to_string(body.size()) + "\r\n"));
  connection.say(body);
  CHECK(contains(connection.hear_out(), "413 Content Too Large"));
}

TEST_CASE("http::serve() answers 413 instead of 100 if the body will be too large") {
  http::serve_options options;
  options.body = 10;
  served connection(echo, options);
  connection.say(post("Expect: 100-continue\r\nContent-Length: 11\r\n"));
  CHECK(connection.hear().starts_with("HTTP/1.1 413 "));
}

TEST_CASE("http::serve() can shut down while a client sends without end") {
  std::stop_source stop;
  http::serve_options options;
  options.body = 10;
  options.connections.drain = stop.get_token();
  served connection(echo, options);
  connection.say(post("Content-Length: 1000000000\r\n"));
  stop.request_stop();
  const auto start = clock::now();
  const std::string piece(1'000, 'x');
  try {
    while (clock::now() - start < 10s) {
      connection.say(piece);
      sleep_for(1ms);
    }
  } catch (const std::system_error&) {  // the connection is closed
  }
  CHECK(clock::now() - start < 5s);
}

TEST_CASE("http::serve_options::log has the time to the answer, not to the client's close") {
  std::vector<clock::duration> took;
  http::serve_options options;
  options.log = [&](const http::answered& entry) { took.push_back(entry.took); };
  for (const std::string& request :
       {get("/", "Connection: close\r\n"), post("Content-Length: 10\r\n")}) {
    served connection(&refuse_all, options);
    connection.say(request);
    CHECK(contains(connection.hear(), "401"));
    sleep_for(at_once);
    connection.client.close();
    connection.await_end();
  }
  REQUIRE(took.size() == 2);
  for (const clock::duration time : took) CHECK(time < at_once / 2);
}
