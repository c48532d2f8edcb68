// SPDX-License-Identifier: MIT
// What handlers of an HTTP server, and its clients, can rely on.
#include <array>
#include <string>

#include "fixtures.hpp"
#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

TEST_CASE("an answer has a date, its length and what the handler wrote") {
  const std::string answer = answer_to(get("/a?b"), echo);
  CHECK(contains(answer, "HTTP/1.1 200 OK\r\nDate: "));
  CHECK(contains(answer, " GMT\r\n"));
  CHECK(undated(answer) == "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nGET /a?b ");
}

TEST_CASE("requests that come one behind the other are answered in order, in few packets") {
  served one(echo);
  one.say(get("/1") + get("/2") + get("/3"));
  const std::string together = one.hear();
  CHECK(count_of(together, "HTTP/1.1 200 OK") == 3);
  CHECK(together.find("GET /1") < together.find("GET /2"));
  CHECK(together.find("GET /2") < together.find("GET /3"));
  one.say(get("/4"));
  CHECK(contains(one.hear(), "GET /4"));
}

TEST_CASE("a request may come in pieces of any size") {
  const std::string text =
      "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody" + get("/g");
  served one(echo);
  for (const char each : text) {
    one.say(std::string(1, each));
    snooze();
  }
  one.client.shutdown(SHUT_WR);
  const std::string answers = one.hear_out();
  CHECK(contains(answers, "POST /p body"));
  CHECK(contains(answers, "GET /g"));
}

TEST_CASE("a body is read by its length or in chunks, also one that the handler reads in parts") {
  const http::handler in_parts = [](request& asked, response& answer) {
    std::array<std::byte, 3> part;
    while (const std::size_t size = asked.read(part)) {
      answer.write(text_of(std::span(part).first(size)) + "|");
    }
    CHECK(asked.read(part) == 0);
  };
  CHECK(
      contains(answer_to("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n1234567", in_parts),
               "123|456|7|"));
  const std::string chunks =
      "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4;ext=1\r\n1234\r\n1\r\n5\r\n0\r\nTrailer: x\r\n\r\n";
  CHECK(contains(answer_to(chunks, in_parts), "123|4|5|"));
  const std::string both = answer_to(chunks + get("/next"), echo);
  CHECK(contains(both, "PUT / 12345"));
  CHECK(contains(both, "GET /next"));
}

TEST_CASE("the length of a body is known before it is read, unless it comes in chunks") {
  std::optional<std::uint64_t> length;
  const http::handler note = [&](request& asked, response&) { length = asked.length(); };
  answer_to(get("/"), note);
  CHECK(length == 0u);
  answer_to("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n1234567", note);
  CHECK(length == 7u);
  answer_to("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", note);
  CHECK_FALSE(length.has_value());
}

TEST_CASE("a client that waits to be asked for its body is asked when the handler reads it") {
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  SECTION("and it is read") {
    served one(echo);
    one.say(head);
    CHECK(one.hear() == "HTTP/1.1 100 Continue\r\n\r\n");
    one.say("body");
    CHECK(contains(one.hear(), "POST / body"));
  }
  SECTION("and it is not: the client is answered, and the connection ends") {
    served one([](request&, response& answer) { answer.status(403); });
    one.say(head);
    const std::string answer = one.hear_out();
    CHECK(contains(answer, "403 Forbidden"));
    CHECK(contains(answer, "Connection: close"));
  }
}

TEST_CASE("a body that the handler leaves is dropped, and the next request is answered") {
  const http::handler idle = [](request& asked, response& answer) { answer.write(asked.target()); };
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

TEST_CASE("a long answer, or one that is flushed, goes in chunks") {
  served one([](request&, response& answer) {
    answer.write("first");
    answer.flush();
    CHECK(answer.begun());
    CHECK_THROWS_AS(answer.status(404), std::logic_error);
    CHECK_THROWS_AS(answer.header("A", "b"), std::logic_error);
    sleep_for(1ms);
    answer.write("second");
  });
  one.say(get("/"));
  CHECK(undated(one.hear()) ==
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
  CHECK(one.hear() == "6\r\nsecond\r\n0\r\n\r\n");

  const std::string large(100000, 'x');
  const std::string answer = answer_to(get("/"), [&](request&, response& to) { to.write(large); });
  CHECK(contains(answer, "186a0\r\n" + large + "\r\n0\r\n\r\n"));
}

TEST_CASE("a handler that knows the length says it, and keeps to it") {
  const std::string large(100000, 'x');
  const std::string answer = answer_to(get("/"), [&](request&, response& to) {
    to.header("Content-Length", "100000").write(large);
  });
  CHECK(contains(answer, "Content-Length: 100000\r\n\r\n" + large));
  CHECK_FALSE(contains(answer, "chunked"));

  served wrong(
      [&](request&, response& to) { to.header("Content-Length", "5").write("1234567890"); });
  const std::string refused = wrong.answer_to(get("/"));
  CHECK(contains(refused, "500"));
  CHECK_FALSE(contains(refused, "12345"));
  CHECK_THROWS_AS(wrong.await_end(), std::logic_error);

  served less([&](request&, response& to) { to.header("Content-Length", "5").write("1"); });
  CHECK_FALSE(contains(less.answer_to(get("/1") + get("/2")), "Content-Length: 5\r\n\r\n1HTTP"));
  served more([&](request&, response& to) {
    to.header("Content-Length", "1").flush();
    to.write("12");
  });
  more.answer_to(get("/"));
  CHECK_THROWS_AS(more.await_end(), std::logic_error);
}

TEST_CASE("HEAD is answered with the head that GET would get") {
  const http::handler short_one = [](request&, response& answer) { answer.write("12345"); };
  const std::string head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
  CHECK(undated(answer_to(head, short_one)) == "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  CHECK(count_of(answer_to(head + get("/"), short_one), "12345") == 1);
}

TEST_CASE("what has no body by its status has none") {
  for (const int status : {204, 304}) {
    const std::string answer = answer_to(
        get("/") + get("/"), [&](request&, response& to) { to.status(status).write("nothing"); });
    CHECK(count_of(answer, "HTTP/1.1 " + std::to_string(status)) == 2);
    CHECK_FALSE(contains(answer, "nothing"));
    CHECK_FALSE(contains(answer, "Content-Length"));
    const std::string late = answer_to(get("/"), [&](request&, response& to) {
      to.write("nothing");
      to.status(status);
    });
    CHECK_FALSE(contains(late, "nothing"));
  }
}

TEST_CASE("a client of HTTP/1.0 gets no chunks, and its connection ends unless it asks otherwise") {
  const http::handler flushed = [](request&, response& answer) {
    answer.write("1");
    answer.flush();
    answer.write("2");
  };
  const std::string answer = answer_to("GET / HTTP/1.0\r\n\r\n" + get("/"), flushed);
  CHECK(undated(answer) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n12");
  const std::string kept =
      answer_to("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/next"), echo);
  CHECK(contains(kept, "Connection: keep-alive\r\n"));
  CHECK(contains(kept, "GET /next"));
}

TEST_CASE("a client that says so, or a handler, ends the connection with the answer") {
  const std::string asked = answer_to(get("/1", "Connection: close\r\n") + get("/2"), echo);
  CHECK(contains(asked, "Connection: close\r\n"));
  CHECK_FALSE(contains(asked, "/2"));
  const std::string told = answer_to(get("/1") + get("/2"), [](request& r, response& answer) {
    answer.header("Connection", "close").write(r.target());
  });
  CHECK(count_of(told, "Connection: close\r\n") == 1);
  CHECK_FALSE(contains(told, "/2"));
}

TEST_CASE("a handler that fails is answered for by 500, and whoever serves is told") {
  served one([](request&, response& answer) {
    answer.write("half");
    throw oops();
  });
  const std::string answer = one.answer_to(get("/") + get("/"));
  CHECK(count_of(answer, "500 Internal Server Error") == 1);
  CHECK(contains(answer, "Connection: close"));
  CHECK_FALSE(contains(answer, "half"));
  CHECK_THROWS_AS(one.await_end(), oops);
}

TEST_CASE("an answer that fails when part of it has been sent is cut off, and looks so") {
  served one([](request&, response& answer) {
    answer.write("half");
    answer.flush();
    throw oops();
  });
  const std::string answer = one.answer_to(get("/"));
  CHECK(contains(answer, "4\r\nhalf\r\n"));
  CHECK_FALSE(contains(answer, "\r\n0\r\n"));
  CHECK_THROWS_AS(one.await_end(), oops);
}

TEST_CASE("a status_error is the answer, and no failure of the server") {
  served one([](request& asked, response& answer) {
    if (asked.target() == "/gone") throw http::status_error(410, "it was here");
    answer.write("fine");
  });
  const std::string answer = one.answer_to(get("/gone") + get("/"));
  CHECK(contains(answer, "410 Gone"));
  CHECK(contains(answer, "it was here"));
  CHECK(contains(answer, "fine"));
  one.await_end();
}

TEST_CASE("what a stranger has written adds no header") {
  const http::handler careless = [](request& asked, response& answer) {
    answer.header("X-Echo", asked.query("x").value_or(""));
  };
  CHECK(contains(answer_to(get("/?x=fine"), careless), "X-Echo: fine\r\n"));
  served one(careless);
  const std::string answer = one.answer_to(get("/?x=a%0d%0aSet-Cookie:%20b"));
  CHECK(contains(answer, "500"));
  CHECK_FALSE(contains(answer, "Set-Cookie"));
  CHECK_THROWS_AS(one.await_end(), std::invalid_argument);
}

TEST_CASE("headers that were received can be sent on, and are only headers then") {
  const std::string answer =
      answer_to(get("/", "X-A: 1\r\n") + get("/"), [](request& r, response& to) {
        to.headers() = r.headers();
        to.header("X-B", r.header("x-a"));
        to.headers().add("X-C", to.headers().get("x-b"));
        to.headers().set("X-C", to.headers().get("x-c"));
        to.write("body");
      });
  CHECK(count_of(answer, "HTTP/1.1") == 2);
  CHECK(contains(
      undated(answer),
      "HTTP/1.1 200 OK\r\nHost: a\r\nX-A: 1\r\nX-B: 1\r\nX-C: 1\r\nContent-Length: 4\r\n"));
}

TEST_CASE("a value may be a part of what the fields have already") {
  http::fields all;
  all.add("Location", "/" + std::string(100, 'x'));
  for (int round = 0; round < 50; ++round) {
    all.set("Location", all.get("location").substr(1));
    all.add("Copy", all.get("location"));
  }
  CHECK(all.get("location") == std::string(51, 'x'));
  CHECK(all.size() == 51);
}

TEST_CASE("an answer that is whole arrives though the next one is cut") {
  const std::string answers =
      answer_to(get("/whole") + get("/next"), [](request& asked, response& to) {
        if (asked.target() == "/next") to.header("Content-Length", "100");
        to.write(asked.target());
      });
  CHECK(contains(answers, "/whole"));
  CHECK_FALSE(contains(answers, "/next"));
}

TEST_CASE("a status_error keeps the headers that were set for it") {
  const std::string answer = answer_to(get("/"), [](request&, response& to) {
    to.header("WWW-Authenticate", "Basic");
    throw http::status_error(401, "who are you?");
  });
  CHECK(contains(answer, "401 Unauthorized"));
  CHECK(contains(answer, "WWW-Authenticate: Basic\r\n"));
  CHECK_THROWS_AS(http::status_error(200, "fine"), std::invalid_argument);
}

TEST_CASE("a log that fails is reported when the answer has been sent") {
  http::serve_options how;
  how.log = [](const http::answered&) { throw oops(); };
  served one(echo, how);
  CHECK(contains(one.answer_to(get("/a", "Connection: close\r\n")), "GET /a"));
  CHECK_THROWS_AS(one.await_end(), oops);
}

TEST_CASE("parameters behind the path are decoded") {
  std::vector<std::optional<std::string>> found;
  answer_to(get("/a%20b?one=1&two=a+b%21&empty=&bare&bad=%zz&one=2"),
            [&](request& asked, response&) {
              CHECK(asked.path() == "/a b");
              for (const char* name : {"one", "two", "empty", "bare", "bad", "none"}) {
                found.push_back(asked.query(name));
              }
            });
  CHECK(found == std::vector<std::optional<std::string>>{"1", "a b!", "", "", {}, {}});
}

TEST_CASE("each answer is told to the log") {
  std::string log;
  http::serve_options how;
  how.log = [&](const http::answered& one) {
    log += std::string(one.method) + ' ' + std::string(one.target) + ' ' +
           std::to_string(one.status) + ' ' + std::to_string(one.bytes) + '\n';
    CHECK(one.took >= 0ns);
  };
  answer_to(
      get("/a") + get("/missing"),
      [](request& asked, response& answer) {
        if (asked.target() != "/a") throw http::status_error(404, "no");
        answer.write("12345");
      },
      how);
  CHECK(log == "GET /a 200 5\nGET /missing 404 3\n");
}

TEST_CASE("a handler learns that its client has hung up") {
  bool ended = false;
  served one(
      [&](request& asked, response&) { ended = !move_on_when_closed(asked, [] { sleep(); }); });
  one.say(get("/"));
  snooze();
  one.client.close();
  one.await_end();
  CHECK(ended);
}

TEST_CASE("the time that a client gives its request, and that of the server, end the handler") {
  const http::handler slow = [](request&, response&) { sleep_for(10s); };
  http::serve_options how;
  SECTION("the client's") {
    const std::string answer = answer_to(get("/", "Request-Timeout: 0.005\r\n"), slow, how);
    CHECK(contains(answer, "503 Service Unavailable"));
  }
  SECTION("the server's, which is shorter") {
    how.handling = 5ms;
    CHECK(contains(answer_to(get("/", "Request-Timeout: 60\r\n"), slow, how), "503"));
  }
  SECTION("a number that is none is not heeded") {
    how.handling = 5ms;
    CHECK(contains(answer_to(get("/", "Request-Timeout: soon\r\n"), slow, how), "503"));
  }
  SECTION("what it calls sees the limit, too") {
    std::optional<clock::duration> left;
    answer_to(
        get("/", "Request-Timeout: 5\r\n"), [&](request&, response&) { left = time_left(); }, how);
    REQUIRE(left.has_value());
    CHECK(*left <= 5s);
    CHECK(*left > 4s);
  }
}

TEST_CASE("a server that drains answers the requests that are there, and closes idle connections") {
  net::tcp_listener listener(net::endpoint::loopback(0));
  const net::endpoint where = listener.local_endpoint();
  std::stop_source stop;
  event begun;
  http::serve_options how;
  how.connections.drain = stop.get_token();
  auto serving = spin([&] {
    return http::serve(listener, how, [&](request& asked, response& answer) {
      if (asked.target() == "/slow") {
        begun.set();
        sleep_for(20ms);
      }
      answer.write("done");
    });
  });
  tcp_stream slow = tcp_stream::connect(where);
  tcp_stream idle = tcp_stream::connect(where);
  tcp_stream late = tcp_stream::connect(where);
  slow.write_all(get("/slow"));
  idle.write_all(get("/"));
  CHECK(contains(read_text(idle, 1000), "done"));
  begun.wait();
  stop.request_stop();
  late.write_all(get("/"));
  const std::string last = read_to_end(late);
  CHECK(contains(last, "done"));
  CHECK(contains(last, "Connection: close"));
  CHECK(contains(read_to_end(slow), "done"));
  CHECK(read_to_end(idle).empty());
  CHECK(serving.await() == 0);
}

}  // namespace
