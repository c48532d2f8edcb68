// SPDX-License-Identifier: MIT
// What an HTTP server does with requests that are no requests, too large or too slow: others are
// answered as ever.
#include <string>

#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// The connection of a refused request answers nothing that comes behind it.
void check_refused(const std::string& text, const std::string& status,
                   const http::serve_options& options = {}) {
  CAPTURE(text.substr(0, 200));
  const std::string answer = answer_to(text + get("/smuggled"), echo, options);
  CHECK(answer.substr(0, 9 + status.size()) == "HTTP/1.1 " + status);
  CHECK(contains(answer, "Connection: close\r\n"));
  CHECK(count_of(answer, "HTTP/1.1") == 1);
  CHECK_FALSE(contains(answer, "smuggled"));
}

std::string post(const std::string& fields, const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body;
}

TEST_CASE("http::serve() refuses a message whose end is ambiguous") {
  for (const char* fields : {
           "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
           "Content-Length: 4\r\nContent-Length: 4\r\n",
           "Content-Length: 4\r\nContent-Length: 5\r\n",
           "Content-Length: 4, 4\r\n",
           "Content-Length: +4\r\n",
           "Content-Length: -4\r\n",
           "Content-Length: 0x4\r\n",
           "Content-Length: 4 \t4\r\n",
           "Content-Length: \r\n",
           "Content-Length: 99999999999999999999\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked, identity\r\n",
           "Transfer-Encoding: identity, chunked\r\n",
           "Transfer-Encoding: xchunked\r\n",
           "Transfer-Encoding: \"chunked\"\r\n",
           "Transfer-Encoding: identity\r\n",
           "Transfer-Encoding:\r\n chunked\r\n",
           "X:\r\n \r\n",
           "X: a\r\n\tb\r\n",
           "Content-Length : 4\r\n",
           " Content-Length: 4\r\n",
           "X: a\r\n Content-Length: 4\r\n",
           "X: a\nContent-Length: 4\r\n",
           "X: a\rContent-Length: 4\r\n",
           "Content-Length\r\n",
           ": 4\r\n",
           "Content\x01-Length: 4\r\n",
       }) {
    check_refused(post(fields, "0\r\n\r\n"), "400");
  }
  check_refused(post(std::string("X: a\0b\r\n", 8), ""), "400");
  check_refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400");
}

TEST_CASE("http::serve() refuses an invalid head") {
  for (const char* text : {
           "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET /\r\nHost: a\r\n\r\n",
           "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
           " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET / http/1.1\r\nHost: a\r\n\r\n",
           "G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET /%0 HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET / HTTP/1.1\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
           "\x16\x03\x01\x02\x05\x01\r\n\r\n",
       }) {
    CAPTURE(text);
    const std::string answer = answer_to(text + get("/smuggled"), echo);
    CHECK(contains(answer, "HTTP/1.1 400"));
    CHECK_FALSE(contains(answer, "smuggled"));
  }
  check_refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505");
}

TEST_CASE("http::serve() refuses what is not HTTP at its first byte") {
  served connection(echo);
  connection.say("\x16\x03\x01\x02\x05\x01");
  CHECK(contains(connection.hear_out(), "400 Bad Request"));
}

TEST_CASE("http::serve() ignores a few empty lines before a request") {
  CHECK(contains(answer_to("\r\n\r\n" + get("/a"), echo), "GET /a"));
  check_refused("\r\n\r\n\r\n\r\n\r\n\r\n" + get("/a"), "400");
  const std::string six = "\r\n\r\n\r\n\r\n\r\n\r\n";
  served second(echo);
  second.say(get("/a") + six + get("/b"));
  const std::string answers = second.hear_out();
  CHECK(contains(answers, "GET /a"));
  CHECK(contains(answers, "400 Bad Request"));
  served silent(echo);
  silent.say(get("/a") + six);
  CHECK(contains(silent.hear_out(), "400 Bad Request"));
  served in_parts(echo);
  in_parts.say("\r\n\r\n\r\n\r\n");
  sleep_for(1ms);
  in_parts.say("\r");
  CHECK(contains(in_parts.hear_out(), "400 Bad Request"));
}

TEST_CASE("http::serve() limits the size of trailers, in whatever parts they come") {
  const auto with_trailer = [](std::size_t size) {
    return post("Transfer-Encoding: chunked\r\n", "0\r\nX: " + std::string(size, 'x') + "\r\n\r\n");
  };
  CHECK(contains(answer_to(with_trailer(4000), echo), "HTTP/1.1 200"));
  check_refused(with_trailer(5000), "400");
  served in_parts(echo);
  const std::string text = with_trailer(5000);
  for (std::size_t position = 0; position < text.size(); position += 1000) {
    in_parts.say(text.substr(position, 1000));
    sleep_for(1ms);
  }
  CHECK(contains(in_parts.hear_out(), "HTTP/1.1 400"));
}

TEST_CASE("http::request::path() is the path of an absolute-form target") {
  CHECK(contains(answer_to(get("http://b/c?d"),
                           [](request& request, response& answer) {
                             answer.write(request.path());
                             answer.write(request.target());
                           }),
                 "/chttp://b/c?d"));
}

TEST_CASE("http::serve() refuses a body with invalid chunks") {
  for (const char* body :
       {"4;a=\"\nX: y\n\"\r\nabcd\r\n0\r\n\r\n", "x\r\n", "4\r\nabcdX\r\n", "4\nabcd\r\n0\r\n\r\n",
        "-4\r\nabcd\r\n", "ffffffffffffffffff\r\n", "4 ;\x01\r\nabcd\r\n0\r\n\r\n", "\r\n"}) {
    CAPTURE(body);
    const std::string answer =
        answer_to(post("Transfer-Encoding: chunked\r\n", body) + get("/smuggled"), echo);
    CHECK(contains(answer, "HTTP/1.1 400"));
    CHECK_FALSE(contains(answer, "smuggled"));
  }
  const std::string endless = "4;" + std::string(100000, 'x');
  CHECK(contains(answer_to(post("Transfer-Encoding: chunked\r\n", endless), echo), "HTTP/1.1 400"));
  const std::string trailers = "0\r\n" + std::string(100000, 'x');
  CHECK(
      contains(answer_to(post("Transfer-Encoding: chunked\r\n", trailers), echo), "HTTP/1.1 400"));
}

TEST_CASE("http::serve_options::head, fields and body refuse what is larger than the limit") {
  http::serve_options options;
  options.head = 1000;
  options.fields = 5;
  options.body = 100;
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  CHECK(contains(
      answer_to(start + std::string(1000 - start.size(), 'x') + "\r\n\r\n", echo, options), "200"));
  check_refused(start + std::string(1001 - start.size(), 'x') + "\r\n\r\n", "431", options);
  check_refused("GET /" + std::string(5000, 'x'), "414", options);
  std::string fields = "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n";
  CHECK(contains(answer_to(get("/", fields), echo, options), "200"));
  check_refused(get("/", fields + "E: 5\r\n"), "431", options);

  CHECK(contains(answer_to(post("Content-Length: 100\r\n", std::string(100, 'x')), echo, options),
                 "200"));
  CHECK(contains(answer_to(post("Content-Length: 101\r\n", std::string(101, 'x')), echo, options),
                 "413"));
  check_refused(post("Content-Length: 200000\r\n", std::string(200000, 'x')), "413", options);
  const std::string chunk = "32\r\n" + std::string(50, 'x') + "\r\n";
  CHECK(contains(
      answer_to(post("Transfer-Encoding: chunked\r\n", chunk + chunk + "0\r\n\r\n"), echo, options),
      "200"));
  CHECK(contains(
      answer_to(post("Transfer-Encoding: chunked\r\n", chunk + chunk + "1\r\nx\r\n0\r\n\r\n"), echo,
                options),
      "413"));
}

TEST_CASE("http::serve() closes on a slow client, with 408 if the request has begun") {
  http::serve_options options;
  SECTION("with its first byte") {
    options.first_byte = 5ms;
    CHECK(served(echo, options).hear_out().empty());
  }
  SECTION("with its head") {
    options.rest_of_head = 5ms;
    served connection(echo, options);
    connection.say("GET / HT");
    CHECK(contains(connection.hear_out(), "408 Request Timeout"));
  }
  SECTION("with its next request") {
    options.idle = 5ms;
    served connection(echo, options);
    connection.say(get("/"));
    const std::string answers = connection.hear_out();
    CHECK(contains(answers, "200 OK"));
    CHECK_FALSE(contains(answers, "408"));
  }
  SECTION("with its body") {
    options.stall = 5ms;
    served connection(echo, options);
    connection.say(post("Content-Length: 10\r\n", "12345"));
    CHECK(contains(connection.hear_out(), "408 Request Timeout"));
    served chunked(echo, options);
    chunked.say(post("Transfer-Encoding: chunked\r\n", "5\r\n12"));
    CHECK(contains(chunked.hear_out(), "408 Request Timeout"));
  }
  SECTION("with reading its answer") {
    options.stall = 5ms;
    served connection(
        [](request&, response& answer) { answer.write(std::string(10'000'000, 'x')); }, options);
    connection.say(get("/"));
    connection.await_end();
    CHECK(connection.hear_out().size() < 10'000'000);
  }
}

TEST_CASE("http::serve() answers, and closes in time, though empty lines follow a request") {
  http::serve_options options;
  options.idle = 5ms;
  options.rest_of_head = 5ms;
  served connection(echo, options);
  connection.say(get("/") + "\r\n\r\n");
  CHECK(contains(connection.hear_out(), "GET /"));
  served half(echo, options);
  half.say(get("/") + "\r\n\r\nGET / HT");
  const std::string answers = half.hear_out();
  CHECK(contains(answers, "200 OK"));
  CHECK(contains(answers, "408 Request Timeout"));
}

TEST_CASE("http::request::text() accepts a body in chunks a byte at a time") {
  served connection(echo);
  for (const char byte : post("Transfer-Encoding: chunked\r\n", "4;a=b\r\nbody\r\n0\r\n\r\n") +
                             post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n")) {
    connection.say(std::string(1, byte));
    snooze();
  }
  connection.client.shutdown(SHUT_WR);
  const std::string answers = connection.hear_out();
  CHECK(contains(answers, "POST / body"));
  CHECK(count_of(answers, "200 OK") == 2);
}

TEST_CASE("http::serve_options::rest_of_head limits a client that sends a byte now and then") {
  http::serve_options options;
  options.rest_of_head = 50ms;
  served connection(echo, options);
  connection.say("G");
  CHECK_THROWS_AS(([&] {
                    for (;;) {
                      sleep_for(1ms);
                      connection.say("E");
                    }
                  }()),
                  std::system_error);
}

TEST_CASE("http::serve() survives a client that goes at any point of its request") {
  net::tcp_listener listener(net::endpoint::loopback(0));
  std::size_t failures = 0;
  std::stop_source stop;
  http::serve_options options;
  options.connections.drain = stop.get_token();
  options.connections.on_error = [&](const std::exception_ptr&) { ++failures; };
  auto server = spin([&] { http::serve(listener, options, echo); });
  const std::string text =
      post("Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n0\r\n\r\n") + get("/");
  for (std::size_t size = 0; size < text.size(); ++size) {
    for (const bool resets : {false, true}) {
      tcp_stream client = tcp_stream::connect(listener.local_endpoint());
      client.write_all(text.substr(0, size));
      if (resets) reset_when_closed(client);
      client.close();
    }
  }
  tcp_stream last = tcp_stream::connect(listener.local_endpoint());
  last.write_all(text);
  last.shutdown(SHUT_WR);
  CHECK(count_of(read_to_end(last), "200 OK") == 2);
  stop.request_stop();
  server.await();
  CHECK(failures == 0);
}

}  // namespace
