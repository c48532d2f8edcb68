// SPDX-License-Identifier: MIT
// WebSockets: messages both ways, farewells, peers that break the rules, and interruptions.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;
using http::websocket;
using http::websocket_message;
using http::websocket_options;

const std::string asking =
    "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";

/// A frame as a client sends it. `first`: the bits before the length.
std::string frame(int first, const std::string& data) {
  std::string made(1, static_cast<char>(first));
  const std::size_t size = data.size();
  if (size < 126) {
    made += static_cast<char>(0x80 | size);
  } else {
    made += static_cast<char>(0x80 | (size < 65536 ? 126 : 127));
    for (int byte = size < 65536 ? 1 : 7; byte >= 0; --byte) {
      made += static_cast<char>(size >> (8 * byte));
    }
  }
  return made.append(4, '\0') + data;  // a mask that changes nothing
}

constexpr int text = 0x81;
constexpr int binary = 0x82;
constexpr int rest = 0x80;
constexpr int part = 0x01;
constexpr int middle = 0x00;
constexpr int closing = 0x88;
constexpr int ping = 0x89;
constexpr int pong = 0x8a;

std::string code(int number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number)};
}

/// Sends back what comes, until the peer closes.
void echo_messages(websocket& one) {
  while (const std::optional<websocket_message> each = one.read()) {
    if (each->is_text) {
      one.write(each->data);
    } else {
      one.write(std::as_bytes(std::span(each->data)));
    }
  }
}

http::handler echo_with(websocket_options how = {}) {
  return [how = std::move(how)](request& asked, response& answer) {
    websocket one = websocket::accept(asked, answer, how);
    echo_messages(one);
  };
}

/// A client that writes and reads bytes, and has been accepted.
struct raw_client : served {
  explicit raw_client(const http::handler& called, const std::string& and_then = {},
                      http::serve_options how = {})
      : served(called, std::move(how)) {
    say(asking + "\r\n" + and_then);
    while (!contains(head, "\r\n\r\n")) {
      const std::string more = hear();
      REQUIRE_FALSE(more.empty());
      head += more;
    }
    beyond = head.substr(head.find("\r\n\r\n") + 4);
  }
  std::string hear_out() { return std::exchange(beyond, {}) + served::hear_out(); }
  /// Returns: `size` bytes of what comes behind the head.
  std::string take(std::size_t size) {
    while (beyond.size() < size) {
      const std::string more = hear();
      if (more.empty()) break;
      beyond += more;
    }
    const std::string taken = beyond.substr(0, size);
    beyond.erase(0, size);
    return taken;
  }

  std::string head;
  std::string beyond;
};

/// A server on a port of the loopback, until the test is over.
class server {
 public:
  explicit server(http::handler called) : called_(std::move(called)) {
    serving_.spin([this] { http::serve(listener_, called_); });
  }
  std::string at(const std::string& target) const {
    return "ws://" + listener_.local_endpoint().to_string() + target;
  }

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler called_;
  group serving_;
};

TEST_CASE("a server's handshake is that of the standard") {
  raw_client one(echo_with());
  CHECK(one.head.starts_with("HTTP/1.1 101 "));
  CHECK(contains(one.head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
}

TEST_CASE("messages of every size go both ways, texts and others") {
  const server one(echo_with());
  websocket client = websocket::connect(one.at("/"));
  for (const std::size_t size : {0, 1, 125, 126, 4096, 65535, 65536, 1'000'000}) {
    CAPTURE(size);
    const std::string data(size, 'x');
    client.write(data);
    const auto echoed = client.read();
    REQUIRE(echoed.has_value());
    CHECK(echoed->is_text);
    CHECK(echoed->data == data);
    const std::string bytes(size, '\xff');
    client.write(std::as_bytes(std::span(bytes)));
    const auto returned = client.read();
    REQUIRE(returned.has_value());
    CHECK_FALSE(returned->is_text);
    CHECK(returned->data == bytes);
  }
  client.close();
}

TEST_CASE("what a client sends behind its request, in the same packet, is not lost") {
  raw_client one(echo_with(), frame(text, "early"));
  CHECK(one.take(7) ==
        "\x81\x05"
        "early");
}

TEST_CASE("fibers write whole messages, and the answer to a ping comes between two of them") {
  websocket_options how;
  how.message = 1'000'000;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer, how);
    group writers;
    for (char each : {'a', 'b', 'c'}) {
      writers.spin([&socket, each] {
        for (int count = 0; count < 10; ++count) socket.write(std::string(50'000, each));
      });
    }
    while (socket.read().has_value()) continue;
    writers.await_all();
  });
  for (int count = 0; count < 5; ++count) one.say(frame(ping, "hello"));
  int pongs = 0;
  for (int messages = 0; messages < 30;) {
    const std::string head = one.take(2);
    REQUIRE(head.size() == 2);
    if (head == "\x8a\x05") {
      CHECK(one.take(5) == "hello");
      ++pongs;
      continue;
    }
    REQUIRE(head == "\x81\x7e");
    REQUIRE(one.take(2) == "\xc3\x50");
    const std::string body = one.take(50'000);
    CHECK(body == std::string(50'000, body.at(0)));
    ++messages;
  }
  while (pongs < 5 && one.take(7) == "\x8a\x05hello") ++pongs;
  CHECK(pongs == 5);
}

TEST_CASE("a message may come in parts, with a ping between them") {
  raw_client one(echo_with());
  one.say(frame(part, "one ") + frame(ping, "?") + frame(middle, "") + frame(rest, "two"));
  CHECK(one.take(3) == "\x8a\x01?");
  CHECK(one.take(9) == "\x81\x07one two");
  one.say(frame(pong, "nobody asked") + frame(binary, "z"));
  CHECK(one.take(3) == "\x82\x01z");
}

TEST_CASE("a message may come a byte at a time") {
  raw_client one(echo_with());
  for (const char each : frame(text, std::string(300, 'y')) + frame(ping, "") + frame(text, "z")) {
    one.say(std::string(1, each));
    snooze();
  }
  CHECK(one.take(304) == "\x81\x7e\x01\x2c" + std::string(300, 'y'));
  CHECK(one.take(5) == std::string("\x8a\x00\x81\x01z", 5));
}

TEST_CASE("a peer that closes is answered, and read() tells how it has closed") {
  std::optional<http::websocket_end> end;
  std::error_code late;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    echo_messages(socket);
    end = socket.ended();
    CHECK_FALSE(socket.read().has_value());
    late = code_thrown_by([&] { socket.write("late"); });
  });
  one.say(frame(closing, code(1001) + "leaving"));
  CHECK(one.hear_out() == "\x88\x02" + code(1001));
  one.await_end();
  REQUIRE(end.has_value());
  CHECK(end->code == 1001);
  CHECK(end->reason == "leaving");
  CHECK(late == std::errc::broken_pipe);
}

TEST_CASE("a server closes the connection at once, though its handler goes on") {
  std::string said = frame(closing, code(1000));
  int told = 1000;
  bool closes = false;
  SECTION("when the client closes the WebSocket") {}
  SECTION("when the client answers its farewell") {
    closes = true;
  }
  SECTION("when the client breaks the rules") {
    said = frame(rest, "");
    told = 1002;
  }
  SECTION("when a text ends within a character") {
    said = frame(part, "\xc3") + frame(rest, "");
    told = 1007;
  }
  bool may_return = false;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    if (closes) socket.close();
    (void)code_thrown_by([&] { echo_messages(socket); });
    while (!may_return) sleep_for(1ms);
  });
  one.say(said);
  std::string heard;
  CHECK(move_on_after(10s, [&] { heard = one.hear_out(); }));
  CHECK(heard == "\x88\x02" + code(told));
  may_return = true;
  one.client.close();
  one.await_end();
}

TEST_CASE("close() says why, and waits for the answer") {
  std::optional<http::websocket_end> seen;
  const server one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    echo_messages(socket);
    seen = socket.ended();
  });
  websocket client = websocket::connect(one.at("/"));
  CHECK(client.ended().code == 1005);
  client.write("on its way");  // its echo is dropped
  client.close(4001, "enough");
  REQUIRE(seen.has_value());
  CHECK(seen->code == 4001);
  CHECK(seen->reason == "enough");
  CHECK(client.ended().code == 4001);
  client.close();  // does nothing
  CHECK(code_thrown_by([&] { client.write("late"); }) == std::errc::broken_pipe);
  CHECK_FALSE(client.read().has_value());
}

TEST_CASE("close() does not wait for ever, and takes no impossible reason") {
  websocket_options how;
  how.farewell = 5ms;
  bool is_over = false;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer, how);
    CHECK_THROWS_AS(socket.close(1005), std::invalid_argument);
    CHECK_THROWS_AS(socket.close(999), std::invalid_argument);
    CHECK_THROWS_AS(socket.close(1000, std::string(124, 'x')), std::invalid_argument);
    socket.close(1000);
    is_over = true;
  });
  CHECK(one.hear_out() == "\x88\x02" + code(1000));
  CHECK(is_over);
}

TEST_CASE("a peer that breaks the rules is told, and read() throws") {
  struct broken {
    const char* what;
    std::string bytes;
    int told;
    std::string heard{};
    std::error_code thrown{};
  };
  std::string unmasked = frame(text, "a");
  unmasked[1] = '\x01';
  std::string huge = frame(text, std::string(70'000, 'x')).substr(0, 14);
  huge[2] = '\x7f';  // of a size that nobody can send
  std::vector<broken> all{
      {"a client's frame without a mask", unmasked, 1002},
      {"a bit that means nothing", frame(0xc1, "a"), 1002},
      {"an unknown kind of frame", frame(0x83, "a"), 1002},
      {"an unknown kind of control frame", frame(0x8b, "a"), 1002},
      {"a ping in parts", frame(0x09, "a"), 1002},
      {"a long ping", frame(ping, std::string(126, 'x')), 1002},
      {"the rest of no message", frame(rest, "a"), 1002},
      {"a message inside another", frame(part, "a") + frame(text, "b"), 1002},
      {"a text that is no UTF-8", frame(text, "a\xff"), 1007},
      {"a text that ends within a letter", frame(text, "a\xc3"), 1007},
      {"a message that is too large", frame(text, std::string(1001, 'x')), 1009},
      {"parts of one that is too large", frame(part, std::string(1000, 'x')) + frame(rest, "x"),
       1009},
      {"a size beyond all measure", huge, 1009},
      {"a farewell of one byte", frame(closing, "a"), 1002},
      {"a close frame with a code that must not be sent", frame(closing, code(1005)), 1002},
      {"a farewell that is no UTF-8", frame(closing, code(1000) + "\xff"), 1002},
  };
  group at_once;  // each takes the second that the server lingers
  for (broken& each : all) {
    at_once.spin([&each] {
      websocket_options how;
      how.message = 1000;
      raw_client one([&](request& asked, response& answer) {
        websocket socket = websocket::accept(asked, answer, how);
        try {
          echo_messages(socket);
        } catch (const std::system_error& error) {
          each.thrown = error.code();
        }
      });
      one.say(each.bytes);
      each.heard = one.hear_out();
      one.await_end();
    });
  }
  at_once.await_all();
  for (const broken& each : all) {
    CAPTURE(each.what);
    CHECK(each.heard == "\x88\x02" + code(each.told));
    CHECK(each.thrown);
    CHECK(each.thrown != std::errc::connection_reset);
  }
}

/// A text with characters of 1 to 4 bytes.
const std::string of_all_sizes = "a\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80z";

TEST_CASE("a text may be split within characters, with empty fragments anywhere") {
  std::string said;
  std::string echoed;
  for (std::size_t first = 0; first <= of_all_sizes.size(); ++first) {
    for (std::size_t second = first; second <= of_all_sizes.size(); ++second) {
      said += frame(part, of_all_sizes.substr(0, first)) + frame(middle, "") +
              frame(middle, of_all_sizes.substr(first, second - first)) +
              frame(rest, of_all_sizes.substr(second));
      echoed += "\x81\x0b" + of_all_sizes;
    }
  }
  raw_client one(echo_with(), said);
  CHECK(one.take(echoed.size()) == echoed);
}

TEST_CASE("a text that ends within a character is refused though an empty fragment follows") {
  for (const std::size_t size : {2, 4, 5, 7, 8, 9}) {
    CAPTURE(size);
    for (const std::string& between : {std::string(), frame(middle, "")}) {
      std::error_code thrown;
      raw_client one([&](request& asked, response& answer) {
        websocket socket = websocket::accept(asked, answer);
        CHECK(socket.read()->data == "whole");
        thrown = code_thrown_by([&] { socket.read(); });
        CHECK(code_thrown_by([&] { socket.write("more"); }) == std::errc::broken_pipe);
      });
      one.say(frame(text, "whole") + frame(part, of_all_sizes.substr(0, size)) + between +
              frame(rest, "") + frame(text, "more"));
      one.client.shutdown(SHUT_WR);
      CHECK(one.hear_out() == "\x88\x02" + code(1007));
      CHECK(thrown);
      CHECK(thrown != std::errc::broken_pipe);
    }
  }
}

TEST_CASE("a request that asks for no WebSocket, or for one that cannot be, is refused") {
  const std::string plain = asking.substr(0, asking.find("Upgrade:"));
  const auto refused = [](const std::string& said) { return answer_to(said, echo_with()); };
  CHECK(contains(refused(plain + "\r\n"), "HTTP/1.1 426"));
  CHECK(contains(refused(plain + "\r\n"), "Upgrade: websocket\r\n"));
  CHECK(contains(refused(plain + "\r\n"), "Connection: upgrade\r\n"));
  std::string other = asking + "\r\n";
  other.replace(other.find("13\r\n"), 2, "8");
  CHECK(contains(refused(other), "HTTP/1.1 426"));
  CHECK(contains(refused(other), "Sec-WebSocket-Version: 13\r\n"));
  std::string keyless = asking + "\r\n";
  keyless.erase(keyless.find("Sec-WebSocket-Key"),
                keyless.find("Sec-WebSocket-Version") - keyless.find("Sec-WebSocket-Key"));
  CHECK(contains(refused(keyless), "HTTP/1.1 400"));
  CHECK(contains(refused(asking + "Content-Length: 1\r\n\r\nx"), "HTTP/1.1 400"));
  CHECK(contains(refused("POST" + asking.substr(3) + "Content-Length: 0\r\n\r\n"), "HTTP/1.1 400"));
  for (const char* fields :
       {"Expect: 100-continue", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: ",
        "Sec-WebSocket-Protocol: v1, v 2", "Sec-WebSocket-Protocol: \"v1\"",
        "Sec-WebSocket-Extensions: ,", "Sec-WebSocket-Extensions: a;",
        "Sec-WebSocket-Extensions: a; b=", "Sec-WebSocket-Extensions: a; b=\"c d\"",
        "Sec-WebSocket-Extensions: a; b=\"c", "Sec-WebSocket-Extensions: a; =c"}) {
    CAPTURE(fields);
    CHECK(contains(refused(asking + fields + "\r\n\r\n"), "HTTP/1.1 400"));
  }
  CHECK_THROWS_AS(([&] {
                    served late([](request& asked, response& answer) {
                      answer.flush();
                      websocket::accept(asked, answer);
                    });
                    (void)late.answer_to(asking + "\r\n");
                    late.await_end();
                  }()),
                  std::logic_error);
}

TEST_CASE("what a handler has set goes with the answer, and both ends agree on a protocol") {
  websocket_options how;
  how.protocols = {"v2", "v1"};
  std::string of_server;
  const server one([&](request& asked, response& answer) {
    answer.header("X-Kind", std::string(asked.header("x-mine")));
    websocket socket = websocket::accept(asked, answer, how);
    of_server = socket.protocol();
    socket.write(socket.protocol());
  });
  websocket_options asks;
  asks.headers.set("X-Mine", "yes");
  asks.protocols = {"v0", "v1"};
  websocket client = websocket::connect(one.at("/"), asks);
  CHECK(client.protocol() == "v1");
  CHECK(client.read()->data == "v1");
  CHECK(of_server == "v1");
  CHECK(websocket::connect(one.at("/")).protocol().empty());
  asks.headers.set("Host", "b");
  CHECK_THROWS_AS(websocket::connect(one.at("/"), asks), std::invalid_argument);
  asks.headers.remove("Host");
  for (const std::vector<std::string>& names : {std::vector<std::string>{"a b"}, {"a", "b", "a"}}) {
    asks.protocols = names;
    CHECK_THROWS_AS(websocket::connect(one.at("/"), asks), std::invalid_argument);
  }
}

TEST_CASE("a client is told when a server declines, or is none") {
  const server one([](request&, response& answer) { answer.status(403); });
  CHECK_THROWS_WITH(websocket::connect(one.at("/")), Catch::Contains("403"));
  CHECK_THROWS_AS(websocket::connect("http://127.0.0.1:1/"), std::invalid_argument);
  CHECK_THROWS_AS(websocket::connect("ws://"), std::invalid_argument);
  CHECK_THROWS_AS(websocket::connect(one.at("/#part")), std::invalid_argument);
  CHECK(code_thrown_by([] { websocket::connect("ws://127.0.0.1:1/"); }) ==
        std::errc::connection_refused);
}

TEST_CASE("a read that is interrupted goes on with the same message") {
  std::vector<std::string> got;
  int interruptions = 0;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    while (got.size() < 2) {
      if (!move_on_after(1ms, [&] { got.push_back(socket.read()->data); })) ++interruptions;
    }
  });
  for (const char each : frame(part, "slow ") + frame(rest, "text") + frame(text, "next")) {
    one.say(std::string(1, each));
    sleep_for(2ms);
  }
  one.await_end();
  CHECK(got == std::vector<std::string>{"slow text", "next"});
  CHECK(interruptions > 5);
}

TEST_CASE("a read that is interrupted within a ping, within a message, goes on with both") {
  std::vector<std::string> got;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    while (got.size() < 2) move_on_after(1ms, [&] { got.push_back(socket.read()->data); });
  });
  const std::string asks = frame(ping, "hello");
  const std::vector<std::string> pieces = {frame(part, "a\xc3") + asks.substr(0, 6), asks.substr(6),
                                           frame(rest, "\xa4") + frame(text, "next")};
  for (const std::string& each : pieces) {
    one.say(each);
    sleep_for(5ms);
  }
  one.await_end();
  CHECK(got == std::vector<std::string>{"a\xc3\xa4", "next"});
  CHECK(one.take(7) == "\x8a\x05hello");
}

TEST_CASE("websocket::read() sends a pong that an interruption kept from being sent") {
  const std::string message(2'000'000, 'x');
  std::optional<websocket_message> last;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    group writers;
    writers.spin([&] { socket.write(message); });
    sleep_for(5ms);
    // The pong cannot come between the parts of the message, whose writer waits for the client.
    CHECK_FALSE(move_on_after(20ms, [&] { (void)socket.read(); }));
    writers.await_all();
    last = socket.read();
  });
  one.say(frame(ping, "hello"));
  sleep_for(50ms);
  CHECK(one.take(10 + message.size()).size() == 10 + message.size());
  CHECK(one.take(7) == "\x8a\x05hello");
  one.say(frame(text, "end"));
  one.await_end();
  REQUIRE(last.has_value());
  CHECK(last->data == "end");
}

TEST_CASE("what was cut is followed by nothing, and ends a read") {
  std::error_code of_read;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    group reading;
    reading.spin([&] { of_read = code_thrown_by([&] { (void)socket.read(); }); });
    CHECK_FALSE(move_on_after(50ms, [&] { socket.write(std::string(2'000'000, 'x')); }));
    reading.await_all();
  });
  SECTION("a ping that came meanwhile is not answered") {
    one.say(frame(ping, "hello"));
  }
  SECTION("nothing comes, and the read ends") {}
  one.await_end();
  const std::string all = one.hear_out();
  CHECK(all.size() < 2'000'000);
  CHECK_FALSE(contains(all, "hello"));
  CHECK(of_read);
}

TEST_CASE("a 101 has no headers that are the handshake's own, or of a body") {
  raw_client one([](request& asked, response& answer) {
    answer.header("Content-Length", "5").header("Transfer-Encoding", "chunked");
    answer.header("Connection", "close").header("X-Kind", "test");
    websocket socket = websocket::accept(asked, answer);
    socket.write("first");
  });
  CHECK(one.take(7) ==
        "\x81\x05"
        "first");
  for (const char* name : {"Content-Length", "Transfer-Encoding", "close", "Beast"}) {
    CAPTURE(name);
    CHECK_FALSE(contains(one.head, name));
  }
  CHECK(contains(one.head, "X-Kind: test\r\n"));
}

TEST_CASE("a handler cannot add fields of the handshake to those of the server") {
  const std::string answer = answer_to(asking + "\r\n", [](request& asked, response& to) {
    for (const char* name : {"Accept", "Protocol", "Extensions"}) {
      to.header(std::string("Sec-WebSocket-") + name, "x");
    }
    websocket::accept(asked, to, {.protocols = {"x"}});
  });
  CHECK(answer.starts_with("HTTP/1.1 101 "));
  CHECK(count_of(answer, "Sec-WebSocket-") == 1);
  CHECK(contains(answer, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
}

TEST_CASE("a write that is interrupted before it begins has sent nothing; halfway, it ends all") {
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    cancel_scope none;
    none.call([&] {
      none.cancel();
      socket.write("never");
    });
    socket.write("whole");
    CHECK_FALSE(move_on_after(50ms, [&] { socket.write(std::string(2'000'000, 'x')); }));
    CHECK(code_thrown_by([&] { socket.write("after"); }) == std::errc::broken_pipe);
    CHECK(code_thrown_by([&] { (void)socket.read(); }) == std::errc::broken_pipe);
    socket.close();
  });
  CHECK(one.take(7) == "\x81\x05whole");
  one.await_end();
}

TEST_CASE("a farewell that is interrupted ends the WebSocket") {
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    CHECK_FALSE(move_on_after(2ms, [&] { socket.close(); }));
    CHECK(code_thrown_by([&] { (void)socket.read(); }) == std::errc::broken_pipe);
  });
  CHECK(one.hear_out() == "\x88\x02" + code(1000));
  one.await_end();
}

TEST_CASE("a silent peer is asked, and left if it stays silent") {
  websocket_options how;
  how.idle = 50ms;
  std::error_code thrown;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer, how);
    try {
      (void)socket.read();
    } catch (const timed_out& error) {
      thrown = error.code();
      throw;  // no failure of the handler's
    }
  });
  SECTION("at once") {
    CHECK(one.hear_out() == std::string("\x89\x00", 2));
  }
  SECTION("not while it answers") {
    for (int count = 0; count < 3; ++count) {
      CHECK(one.take(2) == std::string("\x89\x00", 2));
      one.say(frame(pong, ""));
    }
    CHECK(contains(one.hear_out(), std::string("\x89\x00", 2)));
  }
  one.await_end();
  CHECK(thrown == std::errc::timed_out);
}

TEST_CASE("a peer that takes nothing is left") {
  websocket_options how;
  how.stall = 5ms;
  raw_client one([&](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer, how);
    CHECK_THROWS_AS(socket.write(std::string(20'000'000, 'x')), timed_out);
  });
  one.await_end();
}

TEST_CASE("a peer that vanishes is no failure of the handler's") {
  SECTION("in order") {
    std::error_code thrown;
    raw_client one([&](request& asked, response& answer) {
      websocket socket = websocket::accept(asked, answer);
      try {
        echo_messages(socket);
      } catch (const std::system_error& error) {
        thrown = error.code();
        throw;
      }
    });
    one.client.shutdown(SHUT_WR);
    CHECK(one.hear_out().empty());
    one.await_end();
    CHECK(thrown == std::errc::connection_reset);
  }
  SECTION("within a message") {
    raw_client one(echo_with());
    one.say(frame(text, "cut").substr(0, 7));
    one.client.close();
    one.await_end();
  }
}

TEST_CASE("after a WebSocket there is no HTTP on the connection") {
  raw_client one([](request& asked, response& answer) {
    websocket socket = websocket::accept(asked, answer);
    CHECK(socket.read()->data == "last");
  });
  one.say(frame(text, "last") + get("/smuggled"));
  CHECK(one.hear_out().empty());
}

}  // namespace
