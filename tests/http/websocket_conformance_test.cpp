// SPDX-License-Identifier: MIT
// What RFC 6455 demands of both ends of a WebSocket, where no other test shows it: see
// docs/http_conformance.md.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "http/talk.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;
using http::websocket;

const std::string asking =
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// Returns: `text` with `part` replaced.
std::string with(std::string text, const std::string& part, const std::string& replacement) {
  const std::size_t begin = text.find(part);
  REQUIRE(begin != std::string::npos);
  return text.replace(begin, part.size(), replacement);
}

/// A short frame of a client. `first`: the bits before the length.
std::string frame(unsigned first, const std::string& data) {
  std::string bytes(1, static_cast<char>(first));
  bytes += static_cast<char>(0x80 | data.size());
  return bytes.append(4, '\0') + data;  // a mask that changes nothing
}

std::string code(int number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number)};
}

void echo_messages(request& request, response& answer) {
  websocket socket = websocket::accept(request, answer, {.protocols = {"v1", "v2"}});
  while (const auto message = socket.read()) socket.write(message->data);
}

std::string head_of(const std::string& answer) {
  return answer.substr(0, answer.find("\r\n\r\n") + 4);
}

TEST_CASE("websocket::accept() accepts tokens that differ in case, or are on several lines") {
  for (const std::string& text :
       {asking, with(asking, "Upgrade: websocket", "upgrade: WebSocket"),
        with(asking, "Connection: Upgrade", "connection: keep-alive, UPGRADE"),
        with(asking, "GET /", "GET http://a/"),
        with(asking, "Connection: Upgrade", "Connection: keep-alive\r\nConnection: Upgrade"),
        with(asking, "Upgrade: websocket", "Upgrade: h2c\r\nUpgrade: websocket"),
        with(asking, "Host", "Sec-WebSocket-Extensions: a; b; c=1; d=\"\\1\" ,e\r\nHost")}) {
    CAPTURE(text);
    CHECK(answer_to(text, echo_messages).starts_with("HTTP/1.1 101 "));
  }
}

TEST_CASE("websocket::accept() refuses an invalid handshake with an error") {
  const std::string key = "dGhlIHNhbXBsZSBub25jZQ==";
  for (const std::string& text :
       {with(asking, "Upgrade: websocket", "Upgrade: h2c"),
        with(asking, "Connection: Upgrade", "Connection: keep-alive"),
        with(asking, key, "dGhlIHNhbXBsZSBub25j"), with(asking, key, "dGhlIHNhbXBsZSBub25jZXg="),
        with(asking, key, "dGhlIHNhbXBsZSBub25jZR=="),
        with(asking, key, "dGhlIHNhbXBsZSBub25j!Q=="),
        with(asking, key, key + "\r\nSec-WebSocket-Key: " + key),
        with(asking, "Version: 13", "Version: 8, 13"), with(asking, "Host: a\r\n", "")}) {
    CAPTURE(text);
    CHECK(answer_to(text, echo_messages).starts_with("HTTP/1.1 4"));
  }
}

TEST_CASE("websocket::accept() chooses an offered protocol or none, and never an extension") {
  const auto head = [](const std::string& fields) {
    return head_of(answer_to(with(asking, "Upgrade:", fields + "Upgrade:"), echo_messages));
  };
  const std::string name = "Sec-WebSocket-Protocol: ";
  CHECK_FALSE(contains(head(""), name));
  CHECK_FALSE(contains(head(name + "v3, v10\r\n"), name));
  CHECK(contains(head(name + "v3, ,v2\r\n"), name + "v2\r\n"));
  CHECK(contains(head(name + "v3\r\n" + name + "v1\r\n"), name + "v1\r\n"));
  const std::string extended = head("Sec-WebSocket-Extensions: permessage-deflate\r\n");
  CHECK(extended.starts_with("HTTP/1.1 101 "));
  CHECK_FALSE(contains(extended, "Sec-WebSocket-Extensions"));
}

TEST_CASE("websocket::read() rejects a reserved bit, opcode or code, and an overlong length") {
  struct broken {
    std::string bytes;
    int code_sent = 1002;
  };
  std::vector<broken> cases{
      {std::string("\x81\xfe\x00\x05\0\0\0\0hello", 13)},
      {std::string("\x81\xff\0\0\0\0\0\0\xff\xff\0\0\0\0", 14)},
      {std::string("\x81\xff\x80\0\0\0\0\0\0\x01\0\0\0\0", 14), 1009},
  };
  for (const unsigned bit : {0x40u, 0x20u, 0x10u}) {
    cases.push_back({frame(0x82 | bit, "x")});
    cases.push_back({frame(0x89 | bit, "x")});
    cases.push_back({frame(0x01, "x") + frame(0x80 | bit, "x")});
  }
  for (const unsigned kind : {3u, 4u, 5u, 6u, 7u, 11u, 12u, 13u, 14u, 15u}) {
    cases.push_back({frame(0x80 | kind, "x")});
  }
  for (const int number : {0, 999, 1004, 1006, 1015, 1016, 2999, 5000, 65'535}) {
    cases.push_back({frame(0x88, code(number))});
  }
  for (const broken& test : cases) {
    CAPTURE(test.bytes);
    std::vector<std::string> messages;
    std::error_code second;
    served peer([&](request& request, response& answer) {
      websocket socket = websocket::accept(request, answer);
      CHECK_THROWS_AS(messages.push_back(socket.read()->data), std::system_error);
      second = code_thrown_by([&] { messages.push_back(socket.read()->data); });
    });
    const std::string answer = peer.answer_to(asking + test.bytes + frame(0x81, "more"));
    CHECK(answer == head_of(answer) + "\x88\x02" + code(test.code_sent));
    CHECK(messages.empty());
    CHECK(second == std::errc::broken_pipe);
  }
}

TEST_CASE("websocket::write() of a server sends no mask, and the shortest lengths") {
  struct sized {
    std::size_t size;
    std::string head;
  };
  for (const sized& test : {sized{125, "\x81\x7d"}, sized{126, std::string("\x81\x7e\0\x7e", 4)},
                            sized{65'535, "\x81\x7e\xff\xff"},
                            sized{65'536, std::string("\x81\x7f\0\0\0\0\0\x01\0\0", 10)}}) {
    CAPTURE(test.size);
    const std::string data(test.size, 'x');
    const std::string answer = answer_to(asking, [&](request& request, response& response) {
      websocket::accept(request, response).write(data);
    });
    CHECK(answer.substr(head_of(answer).size()) == test.head + data);
  }
}

TEST_CASE("websocket::close() sends no reserved code") {
  served peer([](request& request, response& answer) {
    websocket socket = websocket::accept(request, answer, {.farewell = 5ms});
    for (const int number : {0, 1004, 1006, 1015, 1016, 2999, 5000}) {
      CAPTURE(number);
      CHECK_THROWS_AS(socket.close(static_cast<std::uint16_t>(number)), std::invalid_argument);
    }
    socket.close(3000);
  });
  const std::string answer = peer.answer_to(asking);
  CHECK(answer == head_of(answer) + "\x88\x02" + code(3000));
}

/// A server that answers a handshake as `change` makes the right answer, and then says `frames`.
class raw_server {
 public:
  template <typename Change>
  raw_server(Change change, std::string frames) {
    tasks_.spin([this, change, frames = std::move(frames)] {
      for (;;) {
        tcp_stream peer = listener_.accept();
        requests.push_back(read_text(peer, 65'536));
        peer.write_all(change(head_of(answer_to(requests.back(), echo_messages))) + frames);
        heard.push_back(read_to_end(peer));
      }
    });
  }
  std::string authority() const { return listener_.local_endpoint().to_string(); }
  std::string address() const { return "ws://" + authority() + "/chat?room=1"; }

  std::vector<std::string> requests;  // the heads
  std::vector<std::string> heard;     // what came behind them

 private:
  net::tcp_listener listener_{net::endpoint::loopback(0)};
  group tasks_;
};

std::string unchanged(std::string answer) {
  return answer;
}

/// Returns: the value of a header in a head.
std::string value_of(const std::string& head, const std::string& name) {
  const std::size_t begin = head.find("\r\n" + name + ": ");
  if (begin == std::string::npos) return {};
  const std::size_t value = begin + name.size() + 4;
  return head.substr(value, head.find("\r\n", value) - value);
}

TEST_CASE("websocket::connect() sends the handshake of RFC 6455, with another key each time") {
  raw_server peer(unchanged, "");
  std::set<std::string> keys;
  for (std::size_t round = 0; round < 3; ++round) {
    {
      const websocket socket = websocket::connect(peer.address(), {.protocols = {"v3", "v1"}});
    }
    const std::string& head = peer.requests.at(round);
    CHECK(head.starts_with("GET /chat?room=1 HTTP/1.1\r\n"));
    CHECK(head.ends_with("\r\n\r\n"));
    CHECK(value_of(head, "Host") == peer.authority());
    CHECK(value_of(head, "Upgrade") == "websocket");
    CHECK(value_of(head, "Connection") == "upgrade");
    CHECK(value_of(head, "Sec-WebSocket-Version") == "13");
    CHECK(value_of(head, "Sec-WebSocket-Protocol") == "v3, v1");
    CHECK_FALSE(contains(head, "Sec-WebSocket-Extensions"));
    CHECK(count_of(head, "Sec-WebSocket-Key: ") == 1);
    const std::string key = value_of(head, "Sec-WebSocket-Key");
    CHECK(key.size() == 24);
    CHECK(key.ends_with("=="));
    keys.insert(key);
  }
  CHECK(keys.size() == 3);
}

TEST_CASE("websocket::connect() throws if the server's handshake is invalid") {
  struct changed {
    const char* part;
    const char* replacement;
  };
  for (const changed& change : {
           changed{"101 Switching Protocols", "404 Not Found\r\nContent-Length: 0"},
           changed{"101 Switching Protocols", "200 OK"},  // to which there is no end
           changed{"HTTP/1.1", "HTTP/1.0"},
           changed{"Upgrade: websocket\r\n", ""},
           changed{"Upgrade: websocket", "Upgrade: h2c"},
           changed{"Connection: upgrade\r\n", ""},
           changed{"Connection: upgrade", "Connection: close"},
           changed{"Sec-WebSocket-Accept: ", "X: "},
           changed{"Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: x"},
           changed{"\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"},
           changed{"\r\n\r\n", "\r\nSec-WebSocket-Protocol: v9\r\n\r\n"},
           changed{"\r\n\r\n", "\r\nSec-WebSocket-Protocol:\r\n\r\n"},
           changed{"Upgrade: websocket", "Upgrade: websocket, x"},
           changed{"\r\n\r\n", "\r\nSec-WebSocket-Accept: x\r\n\r\n"},
       }) {
    CAPTURE(change.part, change.replacement);
    raw_server peer(
        [&](const std::string& answer) { return with(answer, change.part, change.replacement); },
        "");
    CHECK_THROWS_AS(websocket::connect(peer.address()), http::bad_reply);
  }
}

TEST_CASE("websocket::connect() accepts Connection on two lines, after an informational answer") {
  const auto change = [](const std::string& answer) {
    return "HTTP/1.1 100 Continue\r\n\r\n" +
           with(answer, "Connection", "Connection: x\r\nConnection");
  };
  raw_server peer(change, "\x81\x01z");
  CHECK(websocket::connect(peer.address()).read()->data == "z");
}

TEST_CASE("websocket::write() of a client masks each frame, with another mask each time") {
  raw_server peer(unchanged, std::string("\x89\x01p\x88\x00", 5));
  {
    websocket socket = websocket::connect(peer.address());
    for (int count = 0; count < 2; ++count) socket.write("same");
    CHECK_FALSE(socket.read().has_value());
  }
  while (peer.heard.empty()) sleep_for(1ms);
  const std::string& heard = peer.heard[0];
  REQUIRE(heard.size() == 10 + 10 + 7 + 8);  // two messages, a pong and a farewell
  std::set<std::string> masks;
  for (const std::size_t begin : {0, 10, 20, 27}) {
    CHECK((heard[begin + 1] & 0x80) != 0);
    masks.insert(heard.substr(begin + 2, 4));
  }
  CHECK(masks.size() == 4);
}

TEST_CASE("websocket::read() of a client closes on a masked frame or a text cut in a character") {
  struct broken {
    std::string bytes;
    int code_sent;
  };
  for (const broken& test :
       {broken{frame(0x81, "x"), 1002}, broken{std::string("\x01\x02z\xc3\x80\x00", 6), 1007}}) {
    raw_server peer(unchanged, test.bytes);
    {
      websocket socket = websocket::connect(peer.address());
      CHECK_THROWS_AS(socket.read(), std::system_error);
    }
    while (peer.heard.empty()) sleep_for(1ms);
    const std::string& heard = peer.heard[0];
    REQUIRE(heard.size() == 8);
    CHECK(heard.starts_with("\x88\x82"));
    CHECK((heard[2] ^ heard[6]) == test.code_sent >> 8);
    CHECK(static_cast<unsigned char>(heard[3] ^ heard[7]) == (test.code_sent & 0xff));
  }
}

}  // namespace
