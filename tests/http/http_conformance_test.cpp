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

TEST_CASE("http::serve() answers 400 to an invalid target, Host or field value") {
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

TEST_CASE("http::request has the authority of an absolute-form target as Host") {
  const http::handler tell = [](request& request, response& answer) {
    answer.write(std::string(request.header("host")) + ' ' + std::string(request.path()) + ' ' +
                 request.query("x").value_or("none"));
  };
  CHECK(body_of(answer_to(get("http://b:81/c?x=1"), tell)) == "b:81 /c 1");
  CHECK(body_of(answer_to(get("HTTP://b?x=1"), tell)) == "b / 1");
  CHECK(body_of(answer_to(get("/c"), tell)) == "a /c none");
}

TEST_CASE("http::serve() accepts OPTIONS for the server as a whole") {
  const std::string answer =
      answer_to("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
                [](request& request, response& response) { response.write(request.path()); });
  CHECK(body_of(answer) == "*");
}

TEST_CASE("http::serve() calls no handler for a request without the end of its head") {
  int calls = 0;
  const http::handler count = [&](request&, response&) { ++calls; };
  CHECK(answer_to("DELETE / HTTP/1.1\r\nHost: a\r\n", count).empty());
  CHECK(calls == 0);
  answer_to("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", count);
  CHECK(calls == 1);
}

TEST_CASE("http::serve() does not answer a body that ends before its length") {
  std::string body;
  const http::handler take = [&](request& request, response&) { body = request.text(); };
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
  CHECK(answer_to(head + "bod", take).empty());
  CHECK(body.empty());
  CHECK(status_of(answer_to(head + "body", take)) == "200");
  CHECK(body == "body");
}

TEST_CASE("http::request::header() strips whitespace around a value") {
  const std::string answer = answer_to(
      get("/", "X: \t a \t b\t \r\nY:c\r\nZ: \t\r\n"), [](request& request, response& response) {
        for (const char* name : {"x", "y", "z"}) {
          response.write('<' + std::string(request.header(name)) + '>');
        }
      });
  CHECK(body_of(answer) == "<a \t b><c><>");
}

TEST_CASE("http::serve() ignores empty members of a list") {
  const std::string answer = answer_to(get("/1", "Connection: , ,close,\r\n") + get("/2"), echo);
  CHECK(contains(answer, "Connection: close\r\n"));
  CHECK_FALSE(contains(answer, "/2"));
}

TEST_CASE("http::request::text() ignores chunk extensions, with whitespace and quoted strings") {
  for (const char* extension : {";a", ";a=b", " ; a = b", ";a=\"b;\\\"c\";d"}) {
    CAPTURE(extension);
    const std::string body = std::string("4") + extension + "\r\nbody\r\n0\r\n\r\n";
    CHECK(contains(answer_to(chunked(body), echo), "\r\n\r\nPOST / body"));
  }
}

TEST_CASE("http::request::headers() does not have the trailer fields") {
  const std::string answer = answer_to(chunked("4\r\nbody\r\n0\r\nX-Late: 1\r\nHost: b\r\n\r\n"),
                                       [](request& request, response& response) {
                                         response.write(request.text());
                                         for (const http::field field : request.headers())
                                           response.write(' ' + std::string(field.name));
                                         response.write(' ' + std::string(request.header("host")));
                                       });
  CHECK(body_of(answer) == "body Host Transfer-Encoding a");
}

TEST_CASE("http::response has a space behind its status, even without a reason") {
  const std::string answer =
      answer_to(get("/"), [](request&, response& response) { response.status(299); });
  CHECK(answer.starts_with("HTTP/1.1 299 \r\n"));
}

TEST_CASE("http::response has one Date, in the preferred format") {
  const std::regex date(
      "\r\nDate: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} "
      "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} "
      "GMT\r\n");
  for (const int status : {200, 204, 299, 301, 304, 404, 500}) {
    CAPTURE(status);
    const std::string answer =
        answer_to(get("/"), [&](request&, response& response) { response.status(status); });
    CHECK(std::regex_search(answer, date));
    CHECK(count_of(answer, "Date:") == 1);
  }
  CHECK(std::regex_search(answer_to("nonsense\r\n\r\n", echo), date));
}

TEST_CASE("http::serve() sends no 1xx to HTTP/1.0, and ignores its Upgrade and Expect") {
  const std::string expects =
      "POST / HTTP/1.0\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  served connection(echo);
  connection.say(expects);
  sleep_for(2ms);
  connection.say("body");
  CHECK(connection.hear_out().starts_with("HTTP/1.1 200 OK\r\n"));
  const std::string upgrades =
      "GET / HTTP/1.0\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  CHECK(status_of(answer_to(upgrades, [](request& request, response& answer) {
          http::websocket::accept(request, answer);
        })) == "426");
}

TEST_CASE("http::response has no Transfer-Encoding with 204 and 304, no Content-Length with 204") {
  for (const int status : {204, 304}) {
    CAPTURE(status);
    CHECK_FALSE(contains(answer_to(get("/"),
                                   [&](request&, response& response) {
                                     response.status(status).flush();
                                     response.write("late");
                                   }),
                         "Transfer-Encoding"));
  }
  const std::string empty = answer_to(get("/"), [](request&, response& response) {
    response.status(204).header("Content-Length", "4");
  });
  CHECK(status_of(empty) == "204");
  CHECK_FALSE(contains(empty, "Content-Length"));
}

TEST_CASE("http::response to HEAD has no content, however the handler writes it") {
  const std::string head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string large(100'000, 'x');
  const std::string flushed = answer_to(head, [](request&, response& response) {
    response.write("first");
    response.flush();
    response.write("second");
  });
  CHECK(body_of(flushed).empty());
  const std::string whole =
      answer_to(head, [&](request&, response& response) { response.write(large); });
  CHECK(contains(whole, "Content-Length: 100000\r\n"));
  CHECK(body_of(whole).empty());
  CHECK(body_of(answer_to(head, [](request&, response&) {
          throw http::status_error(404, "none");
        })).empty());
}

TEST_CASE("http::serve() refuses CONNECT and a target without a host") {
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

TEST_CASE("http::serve() finds 100-continue in a list, on any line") {
  for (const char* expect :
       {"Expect: , 100-continue\r\n", "Expect: x\r\nExpect: 100-Continue\r\n"}) {
    CAPTURE(expect);
    served connection(echo);
    connection.say("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n" + std::string(expect) +
                   "\r\n");
    CHECK(connection.hear() == "HTTP/1.1 100 Continue\r\n\r\n");
    connection.say("x");
    CHECK(contains(connection.hear(), "PUT / x"));
  }
}

TEST_CASE("http::serve() answers 500 if a handler sets Content-Length twice") {
  const std::string answer = answer_to(get("/"), [](request&, response& response) {
    response.headers().add("Content-Length", "1");
    response.headers().add("Content-Length", "1");
    response.write("x");
  });
  CHECK(status_of(answer) == "500");
  CHECK(count_of(answer, "Content-Length: ") == 1);
}

TEST_CASE("http::response with status 205 has no content, whatever the handler writes") {
  const std::string answer = answer_to(get("/"), [](request&, response& response) {
    response.status(205);
    response.write("text");
  });
  CHECK(contains(answer, "HTTP/1.1 205 "));
  CHECK(contains(answer, "\r\nContent-Length: 0\r\n"));
  CHECK(body_of(answer).empty());
}

TEST_CASE("http::serve() closes if a handler has close anywhere in Connection") {
  for (const std::vector<std::string>& lines :
       {std::vector<std::string>{"Close"}, {"x, close"}, {"x", "close"}}) {
    const std::string answers = answer_to(get("/") + get("/"), [&](request&, response& response) {
      for (const std::string& line : lines) response.headers().add("Connection", line);
    });
    CHECK(count_of(answers, "200 OK") == 1);
    CHECK(count_of(answers, "lose\r\n") == 1);
  }
}

}  // namespace
