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
  std::string bytes(1, static_cast<char>(first));
  const std::size_t size = data.size();
  if (size < 126) {
    bytes += static_cast<char>(0x80 | size);
  } else {
    bytes += static_cast<char>(0x80 | (size < 65536 ? 126 : 127));
    for (int byte = size < 65536 ? 1 : 7; byte >= 0; --byte) {
      bytes += static_cast<char>(size >> (8 * byte));
    }
  }
  return bytes.append(4, '\0') + data;  // a mask that changes nothing
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
void echo_messages(websocket& socket) {
  while (const std::optional<websocket_message> message = socket.read()) {
    if (message->is_text) {
      socket.write(message->data);
    } else {
      socket.write(std::as_bytes(std::span(message->data)));
    }
  }
}

http::handler echo_with(websocket_options options = {}) {
  return [options = std::move(options)](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer, options);
    echo_messages(socket);
  };
}

/// A client that writes and reads bytes, and has been accepted.
struct raw_client : served {
  explicit raw_client(const http::handler& handler, const std::string& and_then = {},
                      http::serve_options options = {})
      : served(handler, std::move(options)) {
    say(asking + "\r\n" + and_then);
    while (!contains(head, "\r\n\r\n")) {
      const std::string bytes = hear();
      REQUIRE_FALSE(bytes.empty());
      head += bytes;
    }
    surplus = head.substr(head.find("\r\n\r\n") + 4);
  }
  std::string hear_out() { return std::exchange(surplus, {}) + served::hear_out(); }
  /// Returns: `size` bytes of what comes behind the head.
  std::string take(std::size_t size) {
    while (surplus.size() < size) {
      const std::string bytes = hear();
      if (bytes.empty()) break;
      surplus += bytes;
    }
    const std::string bytes = surplus.substr(0, size);
    surplus.erase(0, size);
    return bytes;
  }

  std::string head;
  std::string surplus;
};

/// A server on a port of the loopback, until the test is over.
class server {
 public:
  explicit server(http::handler handler) : handler_(std::move(handler)) {
    tasks_.spin([this] { http::serve(listener_, handler_); });
  }
  std::string at(const std::string& target) const {
    return "ws://" + listener_.local_endpoint().to_string() + target;
  }

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  const http::handler handler_;
  group tasks_;
};

TEST_CASE("websocket::accept() sends the handshake of RFC 6455") {
  raw_client peer(echo_with());
  CHECK(peer.head.starts_with("HTTP/1.1 101 "));
  CHECK(contains(peer.head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
}

TEST_CASE("websocket::write() and read() pass messages of every size, texts and binary ones") {
  const server peer(echo_with());
  websocket client = websocket::connect(peer.at("/"));
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
    const auto binary_echo = client.read();
    REQUIRE(binary_echo.has_value());
    CHECK_FALSE(binary_echo->is_text);
    CHECK(binary_echo->data == bytes);
  }
  client.close();
}

TEST_CASE("websocket::accept() keeps what the client sent behind its request in the same packet") {
  raw_client peer(echo_with(), frame(text, "early"));
  CHECK(peer.take(7) ==
        "\x81\x05"
        "early");
}

TEST_CASE("websocket::write() sends whole messages from several fibers, with a pong between two") {
  websocket_options options;
  options.message = 1'000'000;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer, options);
    group writers;
    for (char letter : {'a', 'b', 'c'}) {
      writers.spin([&socket, letter] {
        for (int count = 0; count < 10; ++count) socket.write(std::string(50'000, letter));
      });
    }
    while (socket.read().has_value()) continue;
    writers.await_all();
  });
  for (int count = 0; count < 5; ++count) peer.say(frame(ping, "hello"));
  int pongs = 0;
  for (int messages = 0; messages < 30;) {
    const std::string head = peer.take(2);
    REQUIRE(head.size() == 2);
    if (head == "\x8a\x05") {
      CHECK(peer.take(5) == "hello");
      ++pongs;
      continue;
    }
    REQUIRE(head == "\x81\x7e");
    REQUIRE(peer.take(2) == "\xc3\x50");
    const std::string body = peer.take(50'000);
    CHECK(body == std::string(50'000, body.at(0)));
    ++messages;
  }
  while (pongs < 5 && peer.take(7) == "\x8a\x05hello") ++pongs;
  CHECK(pongs == 5);
}

TEST_CASE("websocket::read() joins the parts of a message, and answers a ping between them") {
  raw_client peer(echo_with());
  peer.say(frame(part, "one ") + frame(ping, "?") + frame(middle, "") + frame(rest, "two"));
  CHECK(peer.take(3) == "\x8a\x01?");
  CHECK(peer.take(9) == "\x81\x07one two");
  peer.say(frame(pong, "nobody asked") + frame(binary, "z"));
  CHECK(peer.take(3) == "\x82\x01z");
}

TEST_CASE("websocket::read() accepts a message that comes a byte at a time") {
  raw_client peer(echo_with());
  for (const char byte : frame(text, std::string(300, 'y')) + frame(ping, "") + frame(text, "z")) {
    peer.say(std::string(1, byte));
    snooze();
  }
  CHECK(peer.take(304) == "\x81\x7e\x01\x2c" + std::string(300, 'y'));
  CHECK(peer.take(5) == std::string("\x8a\x00\x81\x01z", 5));
}

TEST_CASE("websocket::read() answers a close, and ended() has its code and reason") {
  std::optional<http::websocket_end> end;
  std::error_code late;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    echo_messages(socket);
    end = socket.ended();
    CHECK_FALSE(socket.read().has_value());
    late = code_thrown_by([&] { socket.write("late"); });
  });
  peer.say(frame(closing, code(1001) + "leaving"));
  CHECK(peer.hear_out() == "\x88\x02" + code(1001));
  peer.await_end();
  REQUIRE(end.has_value());
  CHECK(end->code == 1001);
  CHECK(end->reason == "leaving");
  CHECK(late == std::errc::broken_pipe);
}

TEST_CASE("websocket closes the connection at once, though its handler goes on") {
  std::string frames = frame(closing, code(1000));
  int code_sent = 1000;
  bool closes = false;
  SECTION("when the client closes the WebSocket") {}
  SECTION("when the client answers its farewell") {
    closes = true;
  }
  SECTION("when the client breaks the rules") {
    frames = frame(rest, "");
    code_sent = 1002;
  }
  SECTION("when a text ends within a character") {
    frames = frame(part, "\xc3") + frame(rest, "");
    code_sent = 1007;
  }
  bool may_return = false;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    if (closes) socket.close();
    (void)code_thrown_by([&] { echo_messages(socket); });
    while (!may_return) sleep_for(1ms);
  });
  peer.say(frames);
  std::string heard;
  CHECK(move_on_after(10s, [&] { heard = peer.hear_out(); }));
  CHECK(heard == "\x88\x02" + code(code_sent));
  may_return = true;
  peer.client.close();
  peer.await_end();
}

TEST_CASE("websocket::close() sends its reason, and waits for the answer") {
  std::optional<http::websocket_end> end;
  const server peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    echo_messages(socket);
    end = socket.ended();
  });
  websocket client = websocket::connect(peer.at("/"));
  CHECK(client.ended().code == 1005);
  client.write("on its way");  // its echo is dropped
  client.close(4001, "enough");
  REQUIRE(end.has_value());
  CHECK(end->code == 4001);
  CHECK(end->reason == "enough");
  CHECK(client.ended().code == 4001);
  client.close();  // does nothing
  CHECK(code_thrown_by([&] { client.write("late"); }) == std::errc::broken_pipe);
  CHECK_FALSE(client.read().has_value());
}

TEST_CASE("websocket::close() waits for a limited time, and rejects an invalid reason") {
  websocket_options options;
  options.farewell = 5ms;
  bool is_over = false;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer, options);
    CHECK_THROWS_AS(socket.close(1005), std::invalid_argument);
    CHECK_THROWS_AS(socket.close(999), std::invalid_argument);
    CHECK_THROWS_AS(socket.close(1000, std::string(124, 'x')), std::invalid_argument);
    socket.close(1000);
    is_over = true;
  });
  CHECK(peer.hear_out() == "\x88\x02" + code(1000));
  CHECK(is_over);
}

TEST_CASE("websocket::read() throws if the peer breaks the protocol, and sends it the reason") {
  struct broken {
    const char* title;
    std::string bytes;
    int code_sent;
    std::string heard{};
    std::error_code failure{};
  };
  std::string unmasked = frame(text, "a");
  unmasked[1] = '\x01';
  std::string huge = frame(text, std::string(70'000, 'x')).substr(0, 14);
  huge[2] = '\x7f';  // of a size that nobody can send
  std::vector<broken> cases{
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
  for (broken& test : cases) {
    at_once.spin([&test] {
      websocket_options options;
      options.message = 1000;
      raw_client peer([&](request& request, response& answer) {
        websocket socket = websocket::accept(request, answer, options);
        try {
          echo_messages(socket);
        } catch (const std::system_error& error) {
          test.failure = error.code();
        }
      });
      peer.say(test.bytes);
      test.heard = peer.hear_out();
      peer.await_end();
    });
  }
  at_once.await_all();
  for (const broken& test : cases) {
    CAPTURE(test.title);
    CHECK(test.heard == "\x88\x02" + code(test.code_sent));
    CHECK(test.failure);
    CHECK(test.failure != std::errc::connection_reset);
  }
}

/// A text with characters of 1 to 4 bytes.
const std::string of_all_sizes = "a\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80z";

TEST_CASE("websocket::read() accepts a text split within characters, with empty fragments") {
  std::string frames;
  std::string echoed;
  for (std::size_t first = 0; first <= of_all_sizes.size(); ++first) {
    for (std::size_t second = first; second <= of_all_sizes.size(); ++second) {
      frames += frame(part, of_all_sizes.substr(0, first)) + frame(middle, "") +
                frame(middle, of_all_sizes.substr(first, second - first)) +
                frame(rest, of_all_sizes.substr(second));
      echoed += "\x81\x0b" + of_all_sizes;
    }
  }
  raw_client peer(echo_with(), frames);
  CHECK(peer.take(echoed.size()) == echoed);
}

TEST_CASE("websocket::read() rejects a text that ends within a character, then an empty fragment") {
  for (const std::size_t size : {2, 4, 5, 7, 8, 9}) {
    CAPTURE(size);
    for (const std::string& filler : {std::string(), frame(middle, "")}) {
      std::error_code failure;
      raw_client peer([&](request& request, response& answer) {
        websocket socket = websocket::accept(request, answer);
        CHECK(socket.read()->data == "whole");
        failure = code_thrown_by([&] { socket.read(); });
        CHECK(code_thrown_by([&] { socket.write("more"); }) == std::errc::broken_pipe);
      });
      peer.say(frame(text, "whole") + frame(part, of_all_sizes.substr(0, size)) + filler +
               frame(rest, "") + frame(text, "more"));
      peer.client.shutdown(SHUT_WR);
      CHECK(peer.hear_out() == "\x88\x02" + code(1007));
      CHECK(failure);
      CHECK(failure != std::errc::broken_pipe);
    }
  }
}

TEST_CASE("websocket::accept() refuses a request that asks for no WebSocket, or an invalid one") {
  const std::string plain = asking.substr(0, asking.find("Upgrade:"));
  const auto refused = [](const std::string& request) { return answer_to(request, echo_with()); };
  CHECK(contains(refused(plain + "\r\n"), "HTTP/1.1 426"));
  CHECK(contains(refused(plain + "\r\n"), "Upgrade: websocket\r\n"));
  CHECK(contains(refused(plain + "\r\n"), "Connection: upgrade\r\n"));
  std::string outdated = asking + "\r\n";
  outdated.replace(outdated.find("13\r\n"), 2, "8");
  CHECK(contains(refused(outdated), "HTTP/1.1 426"));
  CHECK(contains(refused(outdated), "Sec-WebSocket-Version: 13\r\n"));
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
                    served late([](request& request, response& answer) {
                      answer.flush();
                      websocket::accept(request, answer);
                    });
                    (void)late.answer_to(asking + "\r\n");
                    late.await_end();
                  }()),
                  std::logic_error);
}

TEST_CASE("websocket::accept() sends the handler's headers, and both ends agree on a protocol") {
  websocket_options options;
  options.protocols = {"v2", "v1"};
  std::string of_server;
  const server peer([&](request& request, response& answer) {
    answer.header("X-Kind", std::string(request.header("x-mine")));
    websocket socket = websocket::accept(request, answer, options);
    of_server = socket.protocol();
    socket.write(socket.protocol());
  });
  websocket_options asks;
  asks.headers.set("X-Mine", "yes");
  asks.protocols = {"v0", "v1"};
  websocket client = websocket::connect(peer.at("/"), asks);
  CHECK(client.protocol() == "v1");
  CHECK(client.read()->data == "v1");
  CHECK(of_server == "v1");
  CHECK(websocket::connect(peer.at("/")).protocol().empty());
  asks.headers.set("Host", "b");
  CHECK_THROWS_AS(websocket::connect(peer.at("/"), asks), std::invalid_argument);
  asks.headers.remove("Host");
  for (const std::vector<std::string>& names : {std::vector<std::string>{"a b"}, {"a", "b", "a"}}) {
    asks.protocols = names;
    CHECK_THROWS_AS(websocket::connect(peer.at("/"), asks), std::invalid_argument);
  }
}

TEST_CASE("websocket::connect() throws if the server declines, or is none") {
  const server peer([](request&, response& answer) { answer.status(403); });
  CHECK_THROWS_WITH(websocket::connect(peer.at("/")), Catch::Contains("403"));
  CHECK_THROWS_AS(websocket::connect("http://127.0.0.1:1/"), std::invalid_argument);
  CHECK_THROWS_AS(websocket::connect("ws://"), std::invalid_argument);
  CHECK_THROWS_AS(websocket::connect(peer.at("/#part")), std::invalid_argument);
  CHECK(code_thrown_by([] { websocket::connect("ws://127.0.0.1:1/"); }) ==
        std::errc::connection_refused);
}

TEST_CASE("websocket::read() goes on with the same message after an interruption") {
  std::vector<std::string> messages;
  int interruptions = 0;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    while (messages.size() < 2) {
      if (!move_on_after(1ms, [&] { messages.push_back(socket.read()->data); })) ++interruptions;
    }
  });
  for (const char byte : frame(part, "slow ") + frame(rest, "text") + frame(text, "next")) {
    peer.say(std::string(1, byte));
    sleep_for(2ms);
  }
  peer.await_end();
  CHECK(messages == std::vector<std::string>{"slow text", "next"});
  CHECK(interruptions > 5);
}

TEST_CASE("websocket::read() goes on after an interruption within a ping within a message") {
  std::vector<std::string> messages;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    while (messages.size() < 2)
      move_on_after(1ms, [&] { messages.push_back(socket.read()->data); });
  });
  const std::string asks = frame(ping, "hello");
  const std::vector<std::string> pieces = {frame(part, "a\xc3") + asks.substr(0, 6), asks.substr(6),
                                           frame(rest, "\xa4") + frame(text, "next")};
  for (const std::string& piece : pieces) {
    peer.say(piece);
    sleep_for(5ms);
  }
  peer.await_end();
  CHECK(messages == std::vector<std::string>{"a\xc3\xa4", "next"});
  CHECK(peer.take(7) == "\x8a\x05hello");
}

TEST_CASE("websocket::read() sends a pong that an interruption delayed") {
  const std::string message(2'000'000, 'x');
  std::optional<websocket_message> last;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    group writers;
    writers.spin([&] { socket.write(message); });
    sleep_for(5ms);
    // The pong cannot come between the parts of the message, whose writer waits for the client.
    CHECK_FALSE(move_on_after(20ms, [&] { (void)socket.read(); }));
    writers.await_all();
    last = socket.read();
  });
  peer.say(frame(ping, "hello"));
  sleep_for(50ms);
  CHECK(peer.take(10 + message.size()).size() == 10 + message.size());
  CHECK(peer.take(7) == "\x8a\x05hello");
  peer.say(frame(text, "end"));
  peer.await_end();
  REQUIRE(last.has_value());
  CHECK(last->data == "end");
}

TEST_CASE("websocket::read() ends after a write was cut") {
  std::error_code of_read;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    group readers;
    readers.spin([&] { of_read = code_thrown_by([&] { (void)socket.read(); }); });
    CHECK_FALSE(move_on_after(50ms, [&] { socket.write(std::string(2'000'000, 'x')); }));
    CHECK(move_on_after(5s, [&] { readers.await_all(); }));  // long before the idle limit
  });
  SECTION("a ping that came meanwhile is not answered") {
    peer.say(frame(ping, "hello"));
  }
  SECTION("nothing comes, and the read ends") {}
  peer.await_end();
  const std::string bytes = peer.hear_out();
  CHECK(bytes.size() < 2'000'000);
  CHECK_FALSE(contains(bytes, "hello"));
  CHECK(of_read);
}

TEST_CASE("websocket::accept() sends a 101 without headers of a body or a second handshake") {
  raw_client peer([](request& request, response& answer) {
    answer.header("Content-Length", "5").header("Transfer-Encoding", "chunked");
    answer.header("Connection", "close").header("X-Kind", "test");
    websocket socket = websocket::accept(request, answer);
    socket.write("first");
  });
  CHECK(peer.take(7) ==
        "\x81\x05"
        "first");
  for (const char* name : {"Content-Length", "Transfer-Encoding", "close", "Beast"}) {
    CAPTURE(name);
    CHECK_FALSE(contains(peer.head, name));
  }
  CHECK(contains(peer.head, "X-Kind: test\r\n"));
}

TEST_CASE("websocket::accept() drops handshake fields that the handler adds") {
  const std::string answer = answer_to(asking + "\r\n", [](request& request, response& response) {
    for (const char* name : {"Accept", "Protocol", "Extensions"}) {
      response.header(std::string("Sec-WebSocket-") + name, "x");
    }
    websocket::accept(request, response, {.protocols = {"x"}});
  });
  CHECK(answer.starts_with("HTTP/1.1 101 "));
  CHECK(count_of(answer, "Sec-WebSocket-") == 1);
  CHECK(contains(answer, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
}

TEST_CASE("websocket::write() sends nothing if interrupted at its start, and ends all if halfway") {
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    cancel_scope scope;
    scope.call([&] {
      scope.cancel();
      socket.write("never");
    });
    socket.write("whole");
    CHECK_FALSE(move_on_after(50ms, [&] { socket.write(std::string(2'000'000, 'x')); }));
    CHECK(code_thrown_by([&] { socket.write("after"); }) == std::errc::broken_pipe);
    CHECK(code_thrown_by([&] { (void)socket.read(); }) == std::errc::broken_pipe);
    socket.close();
  });
  CHECK(peer.take(7) == "\x81\x05whole");
  peer.await_end();
}

TEST_CASE("websocket::close() ends the WebSocket if it is interrupted") {
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    CHECK_FALSE(move_on_after(2ms, [&] { socket.close(); }));
    CHECK(code_thrown_by([&] { (void)socket.read(); }) == std::errc::broken_pipe);
  });
  CHECK(peer.hear_out() == "\x88\x02" + code(1000));
  peer.await_end();
}

TEST_CASE("websocket_options::idle pings a silent peer, and drops it if it stays silent") {
  websocket_options options;
  options.idle = 50ms;
  std::error_code failure;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer, options);
    try {
      (void)socket.read();
    } catch (const timed_out& error) {
      failure = error.code();
      throw;  // no failure of the handler's
    }
  });
  SECTION("at once") {
    CHECK(peer.hear_out() == std::string("\x89\x00", 2));
  }
  SECTION("not while it answers") {
    for (int count = 0; count < 3; ++count) {
      CHECK(peer.take(2) == std::string("\x89\x00", 2));
      peer.say(frame(pong, ""));
    }
    CHECK(contains(peer.hear_out(), std::string("\x89\x00", 2)));
  }
  peer.await_end();
  CHECK(failure == std::errc::timed_out);
}

TEST_CASE("websocket_options::stall drops a peer that takes nothing") {
  websocket_options options;
  options.stall = 5ms;
  raw_client peer([&](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer, options);
    CHECK_THROWS_AS(socket.write(std::string(20'000'000, 'x')), timed_out);
  });
  peer.await_end();
}

TEST_CASE("websocket handlers do not fail if the peer vanishes") {
  SECTION("in order") {
    std::error_code failure;
    raw_client peer([&](request& request, response& answer) {
      websocket socket = websocket::accept(request, answer);
      try {
        echo_messages(socket);
      } catch (const std::system_error& error) {
        failure = error.code();
        throw;
      }
    });
    peer.client.shutdown(SHUT_WR);
    CHECK(peer.hear_out().empty());
    peer.await_end();
    CHECK(failure == std::errc::connection_reset);
  }
  SECTION("within a message") {
    raw_client peer(echo_with());
    peer.say(frame(text, "cut").substr(0, 7));
    peer.client.close();
    peer.await_end();
  }
}

TEST_CASE("websocket leaves no HTTP on its connection") {
  raw_client peer([](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer);
    CHECK(socket.read()->data == "last");
  });
  peer.say(frame(text, "last") + get("/smuggled"));
  CHECK(peer.hear_out().empty());
}

}  // namespace
