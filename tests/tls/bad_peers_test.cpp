// SPDX-License-Identifier: MIT
// TLS with peers that stall, break off, talk nonsense, or are not what they were; and fibers that
// are interrupted meanwhile.
#include <openssl/err.h>
#include <sys/wait.h>

#include <array>
#include <string>

#include "fixtures.hpp"
#include "io/scripted_stream.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// Carries bytes from one end of a pair to the other, until `most` have gone or an end is closed.
void carry(tcp_stream& source, tcp_stream& target, std::string& text, std::size_t limit = -1) {
  std::vector<std::byte> buffer(1 << 16);
  std::error_code error;
  while (const std::size_t size = source.read(buffer, error)) {
    const std::size_t length = std::min(size, limit - text.size());
    text += text_of(std::span(buffer).first(length));
    target.write_all(std::span<const std::byte>(buffer).first(length));
    if (text.size() == limit) return;
  }
  target.shutdown(SHUT_WR);
}

/// A handshake of which a client gets the first `most` bytes, and then nothing, or the end.
std::error_code client_given(std::size_t limit, bool then_the_end) {
  plain_pair client_side = plain();
  plain_pair server_side = plain();
  std::error_code code;
  std::string forth;
  std::string back;
  group tasks;
  tasks.spin([&] { carry(client_side.server, server_side.client, forth); });
  tasks.spin([&] {
    if (limit > 0) carry(server_side.client, client_side.server, back, limit);
    if (then_the_end) client_side.server.shutdown(SHUT_WR);
  });
  tasks.spin([&] {
    code_thrown_by([&] { tls::stream::accept(std::move(server_side.server), trust().server); });
  });
  code = code_thrown_by([&] {
    with_timeout(then_the_end ? 10s : 50ms, [&] {
      tls::stream::connect(std::move(client_side.client), trust().client, "example.test");
    });
  });
  tasks.cancel();
  return code;
}

/// The same of a server, which gets so much of what a client says.
std::error_code server_given(std::size_t limit, bool then_the_end) {
  plain_pair client_side = plain();
  plain_pair server_side = plain();
  std::error_code code;
  std::string forth;
  std::string back;
  group tasks;
  tasks.spin([&] { carry(server_side.client, client_side.server, back); });
  tasks.spin([&] {
    if (limit > 0) carry(client_side.server, server_side.client, forth, limit);
    if (then_the_end) server_side.client.shutdown(SHUT_WR);
  });
  tasks.spin([&] {
    code_thrown_by([&] {
      tls::stream::connect(std::move(client_side.client), trust().client, "example.test");
    });
  });
  code = code_thrown_by([&] {
    with_timeout(then_the_end ? 10s : 50ms,
                 [&] { tls::stream::accept(std::move(server_side.server), trust().server); });
  });
  tasks.cancel();
  return code;
}

TEST_CASE("tls::stream::connect() and accept() keep a time limit wherever the peer stalls") {
  for (const std::size_t limit : {0u, 1u, 5u, 6u, 100u, 127u, 128u, 500u}) {
    CAPTURE(limit);
    CHECK(client_given(limit, false) == std::errc::timed_out);
  }
  for (const std::size_t limit : {0u, 1u, 5u, 6u, 100u, 250u}) {
    CAPTURE(limit);
    CHECK(server_given(limit, false) == std::errc::timed_out);
  }
}

TEST_CASE("tls::stream::connect() and accept() report a truncation wherever the peer ends") {
  for (const std::size_t limit : {0u, 1u, 5u, 6u, 100u, 127u, 128u, 500u}) {
    CAPTURE(limit);
    CHECK(client_given(limit, true) == tls::errc::truncated);
  }
  for (const std::size_t limit : {0u, 1u, 5u, 6u, 100u, 250u}) {
    CAPTURE(limit);
    CHECK(server_given(limit, true) == tls::errc::truncated);
  }
}

TEST_CASE("tls::stream::read() reports a connection without a farewell as truncated") {
  plain_pair client_side = plain();
  plain_pair server_side = plain();
  std::string forth;
  std::string back;
  group relay;
  relay.spin([&] { carry(client_side.server, server_side.client, forth); });
  relay.spin([&] { carry(server_side.client, client_side.server, back); });
  auto [client, server] = await_all(
      [&] {
        return tls::stream::connect(std::move(client_side.client), trust().client, "example.test");
      },
      [&] { return tls::stream::accept(std::move(server_side.server), trust().server); });
  server.write_all("what has come");
  CHECK(read_text(client) == "what has come");
  relay.cancel();
  client_side.server.shutdown(SHUT_WR);
  for (int round = 0; round < 2; ++round) {
    CHECK(code_thrown_by([&, &stream = client] { read_text(stream); }) == tls::errc::truncated);
  }
}

TEST_CASE("tls::stream::read() detects bytes that were changed, and returns none of them") {
  plain_pair ends = plain();
  const int wire = ends.client.native_handle();
  secure_pair pair = [&] {
    auto [first, second] = await_all(
        [&] {
          return tls::stream::connect(std::move(ends.client), trust().client, "example.test");
        },
        [&] { return tls::stream::accept(std::move(ends.server), trust().server); });
    return secure_pair{std::move(first), std::move(second)};
  }();
  // A record of application data, with what no key has sealed.
  std::string forged("\x17\x03\x03\0\x20", 5);
  forged.append(32, 'x');
  CHECK(::send(wire, forged.data(), forged.size(), 0) == static_cast<ssize_t>(forged.size()));
  CHECK(code_thrown_by([&] { read_text(pair.server); }) == tls::errc::protocol_error);
  CHECK(code_thrown_by([&] { pair.server.write_all("x"); }) == tls::errc::protocol_error);
  CHECK(code_thrown_by([&] { read_text(pair.client); }) == tls::errc::refused);
}

TEST_CASE("tls::stream::accept() answers nonsense with an error, and the next client is served") {
  std::string too_large("\x16\x03\x01\xff\xff", 5);
  too_large.append(20000, 'x');
  for (const std::string& nonsense : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100, '\0'),
                                      std::string(100, '\xff'), too_large}) {
    plain_pair ends = plain();
    ends.client.write_all(nonsense);
    ends.client.shutdown(SHUT_WR);
    const std::error_code code =
        code_thrown_by([&] { tls::stream::accept(std::move(ends.server), trust().server); });
    CHECK((code == tls::errc::protocol_error || code == tls::errc::truncated));
    CHECK(ERR_peek_error() == 0);
    auto [client, server] = trust().pair();
    client.write_all("x");
    CHECK(read_text(server) == "x");
  }
}

TEST_CASE("tls::stream::read() that was interrupted has read nothing, and the stream goes on") {
  secure_pair ends = trust().pair();
  CHECK_FALSE(move_on_after(1ms, [&] { read_text(ends.client); }));
  auto reader = spin([&] { return read_text(ends.client); });
  snooze();
  reader.raise(oops());
  CHECK_THROWS_AS(reader.await(), oops);
  ends.server.write_all("whole");
  CHECK(read_text(ends.client) == "whole");
}

TEST_CASE("tls::stream::write() that was interrupted leaves whole records") {
  secure_pair ends = trust().pair();
  const std::string piece(10000, 'x');
  std::size_t count = 0;
  while (move_on_after(5ms, [&] { count += ends.client.write(testing::bytes_of(piece)); })) {
  }
  // The last write may have been sealed, and not counted because its scope had ended.
  std::string text;
  auto rest = spin([&] {
    ends.client.write_all("the end");
    ends.client.shutdown(SHUT_WR);
  });
  text = read_all(ends.server);
  rest.await();
  CHECK(text.size() >= count + 7);
  CHECK(text.substr(text.size() - 7) == "the end");
  CHECK(text.find_first_not_of('x') == text.size() - 7);
}

TEST_CASE("tls::stream::read() sends what an interrupted write has left") {
  secure_pair ends = trust().pair();
  const std::string much(50'000'000, 'x');
  CHECK_FALSE(move_on_after(20ms, [&] { ends.client.write_all(much); }));
  std::size_t count = 0;
  auto reader = spin([&] {
    std::vector<std::byte> buffer(1 << 16);
    while (const std::size_t size = ends.server.read(buffer)) count += size;
  });
  for (int i = 0; i < 100 && count <= 100'000; ++i) {
    CHECK_FALSE(move_on_after(50ms, [&] { read_text(ends.client); }));
  }
  const std::size_t count_before = count;
  CHECK(count_before > 100'000);
  ends.client.close();
  reader.await();
  CHECK(count == count_before);
}

TEST_CASE("tls::stream::write() writes nothing in a fiber that has been cancelled") {
  secure_pair ends = trust().pair();
  auto late = spin([&] {
    try {
      sleep();
    } catch (const cancelled&) {
    }
    std::error_code error;
    CHECK(ends.client.write(testing::bytes_of("no"), error) == 0);
    CHECK(error == std::errc::operation_canceled);
    CHECK(ends.client.read({}, error) == 0);
    CHECK(error == std::errc::operation_canceled);
  });
  snooze();
  late.cancel();
  late.await();
  ends.client.close();
  CHECK(read_text(ends.server).empty());
}

TEST_CASE("tls::stream::close() waits a moment at most if the peer does not read") {
  secure_pair ends = trust().pair();
  const std::string much(50'000'000, 'x');
  CHECK_FALSE(move_on_after(20ms, [&] { ends.client.write_all(much); }));
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  try {
    const tls::stream target = std::move(ends.client);
    throw oops();
  } catch (const oops&) {
  }
  CHECK(clock::now() - start < 5s);
}

TEST_CASE("tls::stream::read() returns what the peer sent before a reset, and then the reset") {
  net::tcp_listener listener(net::endpoint::loopback(0));
  auto answerer = spin([&] {
    tls::stream peer = tls::stream::accept(listener.accept(), trust().server);
    peer.write_all("before");
    CHECK(read_text(peer) == "understood");
    // Without a farewell: connect(2) to nothing resets.
    const sockaddr no_address{AF_UNSPEC, {}};
    CHECK(::connect(peer.native_handle(), &no_address, sizeof no_address) == 0);
  });
  tls::stream client = tls::stream::connect(tcp_stream::connect(listener.local_endpoint()),
                                            trust().client, "example.test");
  CHECK(read_text(client) == "before");
  client.write_all("understood");
  answerer.await();
  CHECK(code_thrown_by([&] { read_text(client); }) == std::errc::connection_reset);
}

TEST_CASE("tls::stream::accept() reads all of a client that has sent it and gone") {
  plain_pair client_side = plain();
  plain_pair server_side = plain();
  std::string back;
  group relay;
  relay.spin([&] { carry(server_side.client, client_side.server, back); });
  relay.spin([&] {
    std::vector<std::byte> hello(4096);
    hello.resize(client_side.server.read(hello));
    server_side.client.write_all(hello);
    scripted_stream rest;
    copy(client_side.server, rest);
    // The client is gone, and with it whoever would read the tickets that the server sends.
    server_side.client.write_all(testing::bytes_of(rest.written()));
    server_side.client.close();
  });
  relay.spin([&] {
    tls::stream client =
        tls::stream::connect(std::move(client_side.client), trust().client, "example.test");
    client.write_all("all that I have to say");
  });
  tls::stream server = tls::stream::accept(std::move(server_side.server), trust().server);
  CHECK(read_all(server) == "all that I have to say");
  CHECK(code_thrown_by([&] { server.write_all("x"); }) == std::errc::broken_pipe);
}

TEST_CASE("tls::stream in a forked child closes without a farewell for its parent") {
  secure_pair ends = trust().pair();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ends.client.close();
    ends.server.close();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  ends.client.write_all("still here");
  CHECK(read_text(ends.server) == "still here");
  ends.server.write_all("so am I");
  CHECK(read_text(ends.client) == "so am I");
}

TEST_CASE("tls::stream throws the error of its own call, not of another fiber's") {
  std::vector<std::error_code> codes(20);
  group tasks;
  for (std::size_t index = 0; index < codes.size(); ++index) {
    tasks.spin([&codes, index] {
      switch (index % 4) {
        case 0:
          codes[index] = refused(trust().client, trust().server, "other.test").client;
          break;
        case 1:
          codes[index] = refused(trust().client, trust().server).client;
          break;
        case 2:
          codes[index] = client_given(100, true);
          break;
        default: {
          plain_pair ends = plain();
          ends.client.write_all("GET / HTTP/1.1\r\n\r\n");
          codes[index] =
              code_thrown_by([&] { tls::stream::accept(std::move(ends.server), trust().server); });
        }
      }
    });
  }
  tasks.await_all();
  for (std::size_t index = 0; index < codes.size(); ++index) {
    CAPTURE(index);
    const std::error_code outcomes[] = {
        tls::errc::bad_certificate, {}, tls::errc::truncated, tls::errc::protocol_error};
    CHECK(codes[index] == outcomes[index % 4]);
  }
  CHECK(ERR_peek_error() == 0);
}

}  // namespace
