// SPDX-License-Identifier: MIT
// What RFC 9110 and RFC 9112 demand of a server, where no other test shows it: see
// docs/http_conformance.md.
#include <sys/stat.h>

#include <fstream>
#include <regex>
#include <string>

#include "http/talk.hpp"
#include "io/scratch.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

std::string status_of(const std::string& answer) {
  return answer.substr(0, answer.find("\r\n")).substr(9, 3);
}

std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

std::string chunked(const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}

TEST_CASE("an invalid target, Host or field value is refused with 400") {
  for (const std::string text : {
           "GET /a\rb HTTP/1.1\r\nHost: a\r\n",
           "GET http:///a HTTP/1.1\r\nHost: a\r\n",
           "GET http://user@a/ HTTP/1.1\r\nHost: a\r\n",
           "GET a:80 HTTP/1.1\r\nHost: a\r\n",
           "GET * HTTP/1.1\r\nHost: a\r\n",
           "CONNECT a HTTP/1.1\r\nHost: a\r\n",
           "CONNECT a: HTTP/1.1\r\nHost: a\r\n",
           "CONNECT a:80000 HTTP/1.1\r\nHost: a\r\n",
           "GET / HTTP/1.1\r\n Host: a\r\nHost: a\r\n",
           "GET / HTTP/1.1\r\nHost: a b\r\n",
           "GET / HTTP/1.1\r\nHost: a/b\r\n",
           "GET / HTTP/1.1\r\nHost: a,b\r\n",
           "GET / HTTP/1.1\r\nHost: user@a\r\n",
           "GET / HTTP/1.1\r\nHost: a:b\r\n",
           "GET / HTTP/1.1\r\nHost: [::1\r\n",
           "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nX: a\x01z\r\n",
       }) {
    CAPTURE(text);
    CHECK(status_of(answer_to(text + "\r\n", echo)) == "400");
  }
  CHECK(status_of(answer_to(chunked("0\r\nX: a\rb\r\n\r\n"), echo)) == "400");
  CHECK(status_of(answer_to(chunked("0\r\nX : a\r\n\r\n"), echo)) == "400");
}

TEST_CASE("the authority of an absolute-form target takes the place of Host") {
  const http::handler tell = [](request& asked, response& answer) {
    answer.write(std::string(asked.header("host")) + ' ' + std::string(asked.path()) + ' ' +
                 asked.query("x").value_or("none"));
  };
  CHECK(body_of(answer_to(get("http://b:81/c?x=1"), tell)) == "b:81 /c 1");
  CHECK(body_of(answer_to(get("HTTP://b?x=1"), tell)) == "b / 1");
  CHECK(body_of(answer_to(get("/c"), tell)) == "a /c none");
}

TEST_CASE("OPTIONS may ask for the server as a whole") {
  const std::string answer =
      answer_to("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
                [](request& asked, response& to) { to.write(asked.path()); });
  CHECK(body_of(answer) == "*");
}

TEST_CASE("a request without the end of its head reaches no handler") {
  int calls = 0;
  const http::handler count = [&](request&, response&) { ++calls; };
  CHECK(answer_to("DELETE / HTTP/1.1\r\nHost: a\r\n", count).empty());
  CHECK(calls == 0);
  answer_to("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", count);
  CHECK(calls == 1);
}

TEST_CASE("a body that ends before its length is incomplete, and is not answered") {
  std::string got;
  const http::handler take = [&](request& asked, response&) { got = asked.text(); };
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
  CHECK(answer_to(head + "bod", take).empty());
  CHECK(got.empty());
  CHECK(status_of(answer_to(head + "body", take)) == "200");
  CHECK(got == "body");
}

TEST_CASE("whitespace around a field value is not part of it") {
  const std::string answer =
      answer_to(get("/", "X: \t a \t b\t \r\nY:c\r\nZ: \t\r\n"), [](request& asked, response& to) {
        for (const char* name : {"x", "y", "z"}) {
          to.write('<' + std::string(asked.header(name)) + '>');
        }
      });
  CHECK(body_of(answer) == "<a \t b><c><>");
}

TEST_CASE("empty members of a list are ignored") {
  const std::string answer = answer_to(get("/1", "Connection: , ,close,\r\n") + get("/2"), echo);
  CHECK(contains(answer, "Connection: close\r\n"));
  CHECK_FALSE(contains(answer, "/2"));
}

TEST_CASE("chunk extensions are ignored, with whitespace and quoted strings in them") {
  for (const char* extension : {";a", ";a=b", " ; a = b", ";a=\"b;\\\"c\";d"}) {
    CAPTURE(extension);
    const std::string body = std::string("4") + extension + "\r\nbody\r\n0\r\n\r\n";
    CHECK(contains(answer_to(chunked(body), echo), "\r\n\r\nPOST / body"));
  }
}

TEST_CASE("trailer fields of a request are not merged into its header fields") {
  const std::string answer = answer_to(chunked("4\r\nbody\r\n0\r\nX-Late: 1\r\nHost: b\r\n\r\n"),
                                       [](request& asked, response& to) {
                                         to.write(asked.text());
                                         for (const http::field each : asked.headers())
                                           to.write(' ' + std::string(each.name));
                                         to.write(' ' + std::string(asked.header("host")));
                                       });
  CHECK(body_of(answer) == "body Host Transfer-Encoding a");
}

TEST_CASE("a status line has a space behind its status, even without a reason") {
  const std::string answer = answer_to(get("/"), [](request&, response& to) { to.status(299); });
  CHECK(answer.starts_with("HTTP/1.1 299 \r\n"));
}

TEST_CASE("every final answer has one Date, in the preferred format") {
  const std::regex date(
      "\r\nDate: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} "
      "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} "
      "GMT\r\n");
  for (const int status : {200, 204, 299, 301, 304, 404, 500}) {
    CAPTURE(status);
    const std::string answer =
        answer_to(get("/"), [&](request&, response& to) { to.status(status); });
    CHECK(std::regex_search(answer, date));
    CHECK(count_of(answer, "Date:") == 1);
  }
  CHECK(std::regex_search(answer_to("nonsense\r\n\r\n", echo), date));
}

TEST_CASE("HTTP/1.0 is answered without 1xx, and its Upgrade and Expect are ignored") {
  const std::string expects =
      "POST / HTTP/1.0\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  served one(echo);
  one.say(expects);
  sleep_for(2ms);
  one.say("body");
  CHECK(one.hear_out().starts_with("HTTP/1.1 200 OK\r\n"));
  const std::string upgrades =
      "GET / HTTP/1.0\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  CHECK(status_of(answer_to(upgrades, [](request& asked, response& answer) {
          http::websocket::accept(asked, answer);
        })) == "426");
}

TEST_CASE("204 and 304 have no Transfer-Encoding, and 204 no Content-Length") {
  for (const int status : {204, 304}) {
    CAPTURE(status);
    CHECK_FALSE(contains(answer_to(get("/"),
                                   [&](request&, response& to) {
                                     to.status(status).flush();
                                     to.write("late");
                                   }),
                         "Transfer-Encoding"));
  }
  const std::string empty = answer_to(
      get("/"), [](request&, response& to) { to.status(204).header("Content-Length", "4"); });
  CHECK(status_of(empty) == "204");
  CHECK_FALSE(contains(empty, "Content-Length"));
}

TEST_CASE("the answer to HEAD has no content, however the handler writes it") {
  const std::string head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string large(100'000, 'x');
  const std::string flushed = answer_to(head, [](request&, response& to) {
    to.write("first");
    to.flush();
    to.write("second");
  });
  CHECK(body_of(flushed).empty());
  const std::string whole = answer_to(head, [&](request&, response& to) { to.write(large); });
  CHECK(contains(whole, "Content-Length: 100000\r\n"));
  CHECK(body_of(whole).empty());
  CHECK(body_of(answer_to(head, [](request&, response&) {
          throw http::status_error(404, "none");
        })).empty());
}

TEST_CASE("CONNECT and a target without a host are refused") {
  const auto status_to = [](const std::string& line) {
    return status_of(answer_to(line + " HTTP/1.1\r\nHost: a\r\n\r\n", echo));
  };
  CHECK(status_to("CONNECT a:80") == "501");
  CHECK(status_to("CONNECT [::1]:80") == "501");
  CHECK(status_to("CONNECT /") == "400");
  CHECK(status_to("CONNECT http://a/") == "400");
  CHECK(status_to("GET http://:80/") == "400");
  CHECK(status_to("GET https://:443/") == "400");
}

TEST_CASE("100-continue is found in a list, on any line") {
  for (const char* expect :
       {"Expect: , 100-continue\r\n", "Expect: x\r\nExpect: 100-Continue\r\n"}) {
    CAPTURE(expect);
    served one(echo);
    one.say("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n" + std::string(expect) + "\r\n");
    CHECK(one.hear() == "HTTP/1.1 100 Continue\r\n\r\n");
    one.say("x");
    CHECK(contains(one.hear(), "PUT / x"));
  }
}

TEST_CASE("a handler that sets Content-Length twice has failed") {
  const std::string answer = answer_to(get("/"), [](request&, response& to) {
    to.headers().add("Content-Length", "1");
    to.headers().add("Content-Length", "1");
    to.write("x");
  });
  CHECK(status_of(answer) == "500");
  CHECK(count_of(answer, "Content-Length: ") == 1);
}

TEST_CASE("205 has no content, whatever the handler writes") {
  const std::string answer = answer_to(get("/"), [](request&, response& to) {
    to.status(205);
    to.write("text");
  });
  CHECK(contains(answer, "HTTP/1.1 205 "));
  CHECK(contains(answer, "\r\nContent-Length: 0\r\n"));
  CHECK(body_of(answer).empty());
}

TEST_CASE("close ends the connection, wherever a handler has it in Connection") {
  for (const std::vector<std::string>& lines :
       {std::vector<std::string>{"Close"}, {"x, close"}, {"x", "close"}}) {
    const std::string answers = answer_to(get("/") + get("/"), [&](request&, response& to) {
      for (const std::string& each : lines) to.headers().add("Connection", each);
    });
    CHECK(count_of(answers, "200 OK") == 1);
    CHECK(count_of(answers, "lose\r\n") == 1);
  }
}

}  // namespace
