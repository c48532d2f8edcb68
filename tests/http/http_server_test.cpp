// SPDX-License-Identifier: MIT
// What handlers of an HTTP server, and its clients, can rely on.
#include <array>
#include <string>

#include "fixtures.hpp"
#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

TEST_CASE("http::response has a date, its length and what the handler wrote") {
  const std::string answer = answer_to(get("/a?b"), echo);
  CHECK(contains(answer, "HTTP/1.1 200 OK\r\nDate: "));
  CHECK(contains(answer, " GMT\r\n"));
  CHECK(undated(answer) == "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nGET /a?b ");
}

TEST_CASE("http::serve() answers pipelined requests in order, in few packets") {
  served connection(echo);
  connection.say(get("/1") + get("/2") + get("/3"));
  const std::string together = connection.hear();
  CHECK(count_of(together, "HTTP/1.1 200 OK") == 3);
  CHECK(together.find("GET /1") < together.find("GET /2"));
  CHECK(together.find("GET /2") < together.find("GET /3"));
  connection.say(get("/4"));
  CHECK(contains(connection.hear(), "GET /4"));
}

TEST_CASE("http::serve() accepts a request in pieces of any size") {
  const std::string text =
      "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody" + get("/g");
  served connection(echo);
  for (const char byte : text) {
    connection.say(std::string(1, byte));
    snooze();
  }
  connection.client.shutdown(SHUT_WR);
  const std::string answers = connection.hear_out();
  CHECK(contains(answers, "POST /p body"));
  CHECK(contains(answers, "GET /g"));
}

TEST_CASE("http::request::read() returns a body with a length or in chunks, in parts of any size") {
  const http::handler in_parts = [](request& request, response& answer) {
    std::array<std::byte, 3> part;
    while (const std::size_t size = request.read(part)) {
      answer.write(text_of(std::span(part).first(size)) + "|");
    }
    CHECK(request.read(part) == 0);
  };
  CHECK(
      contains(answer_to("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n1234567", in_parts),
               "123|456|7|"));
  const std::string chunks =
      "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4;ext=1\r\n1234\r\n1\r\n5\r\n0\r\nTrailer: x\r\n\r\n";
  CHECK(contains(answer_to(chunks, in_parts), "123|4|5|"));
  const std::string answers = answer_to(chunks + get("/next"), echo);
  CHECK(contains(answers, "PUT / 12345"));
  CHECK(contains(answers, "GET /next"));
}

TEST_CASE("http::request::length() is known before the body is read, unless it comes in chunks") {
  std::optional<std::uint64_t> length;
  const http::handler note = [&](request& request, response&) { length = request.length(); };
  answer_to(get("/"), note);
  CHECK(length == 0u);
  answer_to("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n1234567", note);
  CHECK(length == 7u);
  answer_to("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", note);
  CHECK_FALSE(length.has_value());
}

TEST_CASE("http::request sends 100 Continue when the handler reads the body") {
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  SECTION("and it is read") {
    served connection(echo);
    connection.say(head);
    CHECK(connection.hear() == "HTTP/1.1 100 Continue\r\n\r\n");
    connection.say("body");
    CHECK(contains(connection.hear(), "POST / body"));
  }
  SECTION("and it is not: the client is answered, and the connection ends") {
    served connection([](request&, response& answer) { answer.status(403); });
    connection.say(head);
    const std::string answer = connection.hear_out();
    CHECK(contains(answer, "403 Forbidden"));
    CHECK(contains(answer, "Connection: close"));
  }
}

TEST_CASE("http::serve() drops a body that the handler leaves, and answers the next request") {
  const http::handler idle = [](request& request, response& answer) {
    answer.write(request.target());
  };
  const auto post = [](std::size_t size) {
    return "POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) +
           "\r\n\r\n" + std::string(size, 'x');
  };
  const std::string small = answer_to(post(5000) + get("/next"), idle);
  CHECK(contains(small, "/post"));
  CHECK(contains(small, "/next"));
  const std::string large = answer_to(post(200000) + get("/next"), idle);
  CHECK(contains(large, "Connection: close"));
  CHECK(contains(large, "/post"));
  CHECK_FALSE(contains(large, "/next"));
}

TEST_CASE("http::response goes in chunks if it is long or flushed") {
  served connection([](request&, response& answer) {
    answer.write("first");
    answer.flush();
    CHECK(answer.begun());
    CHECK_THROWS_AS(answer.status(404), std::logic_error);
    CHECK_THROWS_AS(answer.header("A", "b"), std::logic_error);
    sleep_for(1ms);
    answer.write("second");
  });
  connection.say(get("/"));
  CHECK(undated(connection.hear()) ==
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
  CHECK(connection.hear() == "6\r\nsecond\r\n0\r\n\r\n");

  const std::string large(100000, 'x');
  const std::string answer =
      answer_to(get("/"), [&](request&, response& response) { response.write(large); });
  CHECK(contains(answer, "186a0\r\n" + large + "\r\n0\r\n\r\n"));
}

TEST_CASE("http::response enforces the Content-Length that the handler sets") {
  const std::string large(100000, 'x');
  const std::string answer = answer_to(get("/"), [&](request&, response& response) {
    response.header("Content-Length", "100000").write(large);
  });
  CHECK(contains(answer, "Content-Length: 100000\r\n\r\n" + large));
  CHECK_FALSE(contains(answer, "chunked"));

  served wrong([&](request&, response& response) {
    response.header("Content-Length", "5").write("1234567890");
  });
  const std::string refused = wrong.answer_to(get("/"));
  CHECK(contains(refused, "500"));
  CHECK_FALSE(contains(refused, "12345"));
  CHECK_THROWS_AS(wrong.await_end(), std::logic_error);

  served shortage(
      [&](request&, response& response) { response.header("Content-Length", "5").write("1"); });
  CHECK_FALSE(
      contains(shortage.answer_to(get("/1") + get("/2")), "Content-Length: 5\r\n\r\n1HTTP"));
  served excess([&](request&, response& response) {
    response.header("Content-Length", "1").flush();
    response.write("12");
  });
  excess.answer_to(get("/"));
  CHECK_THROWS_AS(excess.await_end(), std::logic_error);
}

TEST_CASE("http::serve() answers HEAD with the head that GET would get") {
  const http::handler short_one = [](request&, response& answer) { answer.write("12345"); };
  const std::string head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
  CHECK(undated(answer_to(head, short_one)) == "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  CHECK(count_of(answer_to(head + get("/"), short_one), "12345") == 1);
}

TEST_CASE("http::response has no body if its status allows none") {
  for (const int status : {204, 304}) {
    const std::string answer = answer_to(get("/") + get("/"), [&](request&, response& response) {
      response.status(status).write("nothing");
    });
    CHECK(count_of(answer, "HTTP/1.1 " + std::to_string(status)) == 2);
    CHECK_FALSE(contains(answer, "nothing"));
    CHECK_FALSE(contains(answer, "Content-Length"));
    const std::string late = answer_to(get("/"), [&](request&, response& response) {
      response.write("nothing");
      response.status(status);
    });
    CHECK_FALSE(contains(late, "nothing"));
  }
}

TEST_CASE("http::serve() sends no chunks to HTTP/1.0, and closes unless the client keeps alive") {
  const http::handler flushed = [](request&, response& answer) {
    answer.write("1");
    answer.flush();
    answer.write("2");
  };
  const std::string answer = answer_to("GET / HTTP/1.0\r\n\r\n" + get("/"), flushed);
  CHECK(undated(answer) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n12");
  const std::string answers =
      answer_to("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/next"), echo);
  CHECK(contains(answers, "Connection: keep-alive\r\n"));
  CHECK(contains(answers, "GET /next"));
}

TEST_CASE("http::serve() closes the connection if the client or the handler says so") {
  const std::string of_client = answer_to(get("/1", "Connection: close\r\n") + get("/2"), echo);
  CHECK(contains(of_client, "Connection: close\r\n"));
  CHECK_FALSE(contains(of_client, "/2"));
  const std::string of_handler = answer_to(get("/1") + get("/2"), [](request& r, response& answer) {
    answer.header("Connection", "close").write(r.target());
  });
  CHECK(count_of(of_handler, "Connection: close\r\n") == 1);
  CHECK_FALSE(contains(of_handler, "/2"));
}

TEST_CASE("http::serve() answers 500 and throws if the handler throws") {
  served connection([](request&, response& answer) {
    answer.write("half");
    throw oops();
  });
  const std::string answer = connection.answer_to(get("/") + get("/"));
  CHECK(count_of(answer, "500 Internal Server Error") == 1);
  CHECK(contains(answer, "Connection: close"));
  CHECK_FALSE(contains(answer, "half"));
  CHECK_THROWS_AS(connection.await_end(), oops);
}

TEST_CASE("http::response is visibly cut off if the handler throws after a part was sent") {
  served connection([](request&, response& answer) {
    answer.write("half");
    answer.flush();
    throw oops();
  });
  const std::string answer = connection.answer_to(get("/"));
  CHECK(contains(answer, "4\r\nhalf\r\n"));
  CHECK_FALSE(contains(answer, "\r\n0\r\n"));
  CHECK_THROWS_AS(connection.await_end(), oops);
}

TEST_CASE("http::status_error is the answer, and no failure of the server") {
  served connection([](request& request, response& answer) {
    if (request.target() == "/gone") throw http::status_error(410, "it was here");
    answer.write("fine");
  });
  const std::string answer = connection.answer_to(get("/gone") + get("/"));
  CHECK(contains(answer, "410 Gone"));
  CHECK(contains(answer, "it was here"));
  CHECK(contains(answer, "fine"));
  connection.await_end();
}

TEST_CASE("http::response::header() rejects a value with a line break") {
  const http::handler careless = [](request& request, response& answer) {
    answer.header("X-Echo", request.query("x").value_or(""));
  };
  CHECK(contains(answer_to(get("/?x=fine"), careless), "X-Echo: fine\r\n"));
  served connection(careless);
  const std::string answer = connection.answer_to(get("/?x=a%0d%0aSet-Cookie:%20b"));
  CHECK(contains(answer, "500"));
  CHECK_FALSE(contains(answer, "Set-Cookie"));
  CHECK_THROWS_AS(connection.await_end(), std::invalid_argument);
}

TEST_CASE("http::response::headers() accepts the headers of a request, as headers only") {
  const std::string answer =
      answer_to(get("/", "X-A: 1\r\n") + get("/"), [](request& r, response& response) {
        response.headers() = r.headers();
        response.header("X-B", r.header("x-a"));
        response.headers().add("X-C", response.headers().get("x-b"));
        response.headers().set("X-C", response.headers().get("x-c"));
        response.write("body");
      });
  CHECK(count_of(answer, "HTTP/1.1") == 2);
  CHECK(contains(
      undated(answer),
      "HTTP/1.1 200 OK\r\nHost: a\r\nX-A: 1\r\nX-B: 1\r\nX-C: 1\r\nContent-Length: 4\r\n"));
}

TEST_CASE("http::fields::set() and add() accept a part of the fields' own text") {
  http::fields fields;
  fields.add("Location", "/" + std::string(100, 'x'));
  for (int round = 0; round < 50; ++round) {
    fields.set("Location", fields.get("location").substr(1));
    fields.add("Copy", fields.get("location"));
  }
  CHECK(fields.get("location") == std::string(51, 'x'));
  CHECK(fields.size() == 51);
}

TEST_CASE("http::response arrives whole though the next one is cut") {
  const std::string request_without_end =
      "POST /next HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nshort";
  const std::string answers = answer_to(get("/whole") + request_without_end, echo);
  CHECK(contains(answers, "/whole"));
  CHECK(count_of(answers, "HTTP/1.1 ") == 1);
}

TEST_CASE("http::response arrives whole though the next handler writes too little") {
  const std::string answers =
      answer_to(get("/whole") + get("/next"), [](request& request, response& response) {
        if (request.target() == "/next") response.header("Content-Length", "100");
        response.write(request.target());
      });
  CHECK(contains(answers, "/whole"));
  CHECK_FALSE(contains(answers, "/next"));
}

TEST_CASE("http::response does not wait for the body of the next request") {
  served connection(echo);
  connection.say(get("/first") + "POST /next HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
  CHECK(contains(connection.hear(), "/first"));
  connection.say("body");
  CHECK(contains(connection.hear(), "POST /next body"));
}

TEST_CASE("http::status_error keeps the headers that the handler set") {
  const std::string answer = answer_to(get("/"), [](request&, response& response) {
    response.header("WWW-Authenticate", "Basic");
    throw http::status_error(401, "who are you?");
  });
  CHECK(contains(answer, "401 Unauthorized"));
  CHECK(contains(answer, "WWW-Authenticate: Basic\r\n"));
  CHECK_THROWS_AS(http::status_error(200, "fine"), std::invalid_argument);
}

TEST_CASE("http::serve_options::log may throw: serve() reports it after the answer") {
  http::serve_options options;
  options.log = [](const http::answered&) { throw oops(); };
  served connection(echo, options);
  CHECK(contains(connection.answer_to(get("/a", "Connection: close\r\n")), "GET /a"));
  CHECK_THROWS_AS(connection.await_end(), oops);
}

TEST_CASE("http::request::query() decodes the parameters behind the path") {
  std::vector<std::optional<std::string>> values;
  answer_to(get("/a%20b?one=1&two=a+b%21&empty=&bare&bad=%zz&one=2"),
            [&](request& request, response&) {
              CHECK(request.path() == "/a b");
              for (const char* name : {"one", "two", "empty", "bare", "bad", "none"}) {
                values.push_back(request.query(name));
              }
            });
  CHECK(values == std::vector<std::optional<std::string>>{"1", "a b!", "", "", {}, {}});
}

TEST_CASE("http::serve_options::log gets every answer") {
  std::string log;
  http::serve_options options;
  options.log = [&](const http::answered& entry) {
    log += std::string(entry.method) + ' ' + std::string(entry.target) + ' ' +
           std::to_string(entry.status) + ' ' + std::to_string(entry.bytes) + '\n';
    CHECK(entry.took >= 0ns);
  };
  answer_to(
      get("/a") + get("/missing"),
      [](request& request, response& answer) {
        if (request.target() != "/a") throw http::status_error(404, "no");
        answer.write("12345");
      },
      options);
  CHECK(log == "GET /a 200 5\nGET /missing 404 3\n");
}

TEST_CASE("http::request tells move_on_when_closed() that the client has hung up") {
  bool hung_up = false;
  served connection([&](request& request, response&) {
    hung_up = !move_on_when_closed(request, [] { sleep(); });
  });
  connection.say(get("/"));
  snooze();
  connection.client.close();
  connection.await_end();
  CHECK(hung_up);
}

TEST_CASE("http::serve() ends the handler at the client's time limit and at its own") {
  const http::handler slow = [](request&, response&) { sleep_for(10s); };
  http::serve_options options;
  SECTION("the client's") {
    const std::string answer = answer_to(get("/", "Request-Timeout: 0.005\r\n"), slow, options);
    CHECK(contains(answer, "503 Service Unavailable"));
  }
  SECTION("the server's, which is shorter") {
    options.handling = 5ms;
    CHECK(contains(answer_to(get("/", "Request-Timeout: 60\r\n"), slow, options), "503"));
  }
  SECTION("a number that is none is not heeded") {
    options.handling = 5ms;
    CHECK(contains(answer_to(get("/", "Request-Timeout: soon\r\n"), slow, options), "503"));
  }
  SECTION("what it calls sees the limit, too") {
    std::optional<clock::duration> remaining;
    answer_to(
        get("/", "Request-Timeout: 5\r\n"), [&](request&, response&) { remaining = time_left(); },
        options);
    REQUIRE(remaining.has_value());
    CHECK(*remaining <= 5s);
    CHECK(*remaining > 4s);
  }
}

TEST_CASE("http::serve() answers pending requests and closes idle connections while it drains") {
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint address = listener.local_endpoint();
  std::stop_source stop;
  event started;
  http::serve_options options;
  options.connections.drain = stop.get_token();
  auto server = spin([&] {
    return http::serve(listener, options, [&](request& request, response& answer) {
      if (request.target() == "/slow") {
        started.set();
        sleep_for(20ms);
      }
      answer.write("done");
    });
  });
  tcp_stream slow = tcp_stream::connect(address);
  tcp_stream idle = tcp_stream::connect(address);
  tcp_stream late = tcp_stream::connect(address);
  slow.write_all(get("/slow"));
  idle.write_all(get("/"));
  CHECK(contains(read_text(idle, 1000), "done"));
  started.wait();
  stop.request_stop();
  late.write_all(get("/"));
  const std::string last = read_to_end(late);
  CHECK(contains(last, "done"));
  CHECK(contains(last, "Connection: close"));
  CHECK(contains(read_to_end(slow), "done"));
  CHECK(read_to_end(idle).empty());
  CHECK(server.await() == 0);
}

}  // namespace
