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

TEST_CASE("an answer does not wait for a body that nobody reads") {
  for (const char* fields : {"Transfer-Encoding: chunked\r\n", "Content-Length: 10\r\n"}) {
    CAPTURE(fields);
    served one(&refuse_all);
    one.say(post(fields));
    const auto begun = clock::now();
    CHECK(contains(one.hear(), "401"));
    CHECK(clock::now() - begun < at_once);
    CHECK(one.hear_out().empty());  // for the body does not come
    CHECK(clock::now() - begun < 10s);
  }
}

TEST_CASE("a connection goes on after a short body that nobody reads") {
  served one(&refuse_all);
  one.say(post("Content-Length: 10\r\n"));
  CHECK(contains(one.hear(), "401"));
  one.say("0123456789" + get("/next"));
  CHECK(contains(one.hear(), "401"));
  one.say(post("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n");
  CHECK(contains(one.hear(), "401"));
  one.say("0\r\n\r\n" + get("/next"));
  CHECK(contains(one.hear(), "401"));
}

TEST_CASE("a connection ends after a long body that nobody reads, or one that is none") {
  for (const std::string& body : {std::string("Content-Length: 100000\r\n\r\n"),
                                  std::string("Transfer-Encoding: chunked\r\n\r\nno chunk\r\n")}) {
    CAPTURE(body);
    served one(&refuse_all);
    one.say("POST / HTTP/1.1\r\nHost: a\r\n" + body);
    CHECK(contains(one.hear_out(), "401"));
  }
}

TEST_CASE("a client that sends all of a body that is too large reads why it was refused") {
  http::serve_options how;
  how.body = 1'000'000;
  const std::string body(8 * how.body, 'x');
  served one(echo, how);
  one.say(post("Content-Length: " + std::to_string(body.size()) + "\r\n"));
  one.say(body);
  CHECK(contains(one.hear_out(), "413 Content Too Large"));
}

TEST_CASE("a client that asks first is not told to send a body that is too large") {
  http::serve_options how;
  how.body = 10;
  served one(echo, how);
  one.say(post("Expect: 100-continue\r\nContent-Length: 11\r\n"));
  CHECK(one.hear().starts_with("HTTP/1.1 413 "));
}

TEST_CASE("a client that sends for ever holds a server no longer than its shutdown takes") {
  std::stop_source stop;
  http::serve_options how;
  how.body = 10;
  how.connections.drain = stop.get_token();
  served one(echo, how);
  one.say(post("Content-Length: 1000000000\r\n"));
  stop.request_stop();
  const auto begun = clock::now();
  const std::string piece(1'000, 'x');
  try {
    while (clock::now() - begun < 10s) {
      one.say(piece);
      sleep_for(1ms);
    }
  } catch (const std::system_error&) {  // the connection is closed
  }
  CHECK(clock::now() - begun < 5s);
}

TEST_CASE("the log has the time until the answer was sent, not until the client has closed") {
  std::vector<clock::duration> took;
  http::serve_options how;
  how.log = [&](const http::answered& each) { took.push_back(each.took); };
  for (const std::string& said :
       {get("/", "Connection: close\r\n"), post("Content-Length: 10\r\n")}) {
    served one(&refuse_all, how);
    one.say(said);
    CHECK(contains(one.hear(), "401"));
    sleep_for(at_once);
    one.client.close();
    one.await_end();
  }
  REQUIRE(took.size() == 2);
  for (const clock::duration each : took) CHECK(each < at_once / 2);
}
