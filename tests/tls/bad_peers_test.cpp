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
void carry(tcp_stream& from, tcp_stream& to, std::string& seen, std::size_t most = -1) {
  std::vector<std::byte> buffer(1 << 16);
  std::error_code error;
  while (const std::size_t size = from.read(buffer, error)) {
    const std::size_t passed = std::min(size, most - seen.size());
    seen += text_of(std::span(buffer).first(passed));
    to.write_all(std::span<const std::byte>(buffer).first(passed));
    if (seen.size() == most) return;
  }
  to.shutdown(SHUT_WR);
}

/// A handshake of which a client gets the first `most` bytes, and then nothing, or the end.
std::error_code client_given(std::size_t most, bool then_the_end) {
  plain_pair near = plain();
  plain_pair far = plain();
  std::error_code code;
  std::string forth;
  std::string back;
  group all;
  all.spin([&] { carry(near.server, far.client, forth); });
  all.spin([&] {
    if (most > 0) carry(far.client, near.server, back, most);
    if (then_the_end) near.server.shutdown(SHUT_WR);
  });
  all.spin(
      [&] { code_thrown_by([&] { tls::stream::accept(std::move(far.server), trust().server); }); });
  code = code_thrown_by([&] {
    with_timeout(then_the_end ? 10s : 50ms, [&] {
      tls::stream::connect(std::move(near.client), trust().client, "example.test");
    });
  });
  all.cancel();
  return code;
}

/// The same of a server, which gets so much of what a client says.
std::error_code server_given(std::size_t most, bool then_the_end) {
  plain_pair near = plain();
  plain_pair far = plain();
  std::error_code code;
  std::string forth;
  std::string back;
  group all;
  all.spin([&] { carry(far.client, near.server, back); });
  all.spin([&] {
    if (most > 0) carry(near.server, far.client, forth, most);
    if (then_the_end) far.client.shutdown(SHUT_WR);
  });
  all.spin([&] {
    code_thrown_by(
        [&] { tls::stream::connect(std::move(near.client), trust().client, "example.test"); });
  });
  code = code_thrown_by([&] {
    with_timeout(then_the_end ? 10s : 50ms,
                 [&] { tls::stream::accept(std::move(far.server), trust().server); });
  });
  all.cancel();
  return code;
}

TEST_CASE("a peer that stalls in its handshake is left when the time is up, wherever it stalls") {
  for (const std::size_t most : {0u, 1u, 5u, 6u, 100u, 127u, 128u, 500u}) {
    CAPTURE(most);
    CHECK(client_given(most, false) == std::errc::timed_out);
  }
  for (const std::size_t most : {0u, 1u, 5u, 6u, 100u, 250u}) {
    CAPTURE(most);
    CHECK(server_given(most, false) == std::errc::timed_out);
  }
}

TEST_CASE("a handshake that is cut off is a truncation, wherever it is cut") {
  for (const std::size_t most : {0u, 1u, 5u, 6u, 100u, 127u, 128u, 500u}) {
    CAPTURE(most);
    CHECK(client_given(most, true) == tls::errc::truncated);
  }
  for (const std::size_t most : {0u, 1u, 5u, 6u, 100u, 250u}) {
    CAPTURE(most);
    CHECK(server_given(most, true) == tls::errc::truncated);
  }
}

TEST_CASE("a connection that ends without a farewell is truncated, not over") {
  plain_pair near = plain();
  plain_pair far = plain();
  std::string forth;
  std::string back;
  group relay;
  relay.spin([&] { carry(near.server, far.client, forth); });
  relay.spin([&] { carry(far.client, near.server, back); });
  auto [client, server] = await_all(
      [&] { return tls::stream::connect(std::move(near.client), trust().client, "example.test"); },
      [&] { return tls::stream::accept(std::move(far.server), trust().server); });
  server.write_all("what has come");
  CHECK(read_text(client) == "what has come");
  relay.cancel();
  near.server.shutdown(SHUT_WR);
  for (int again = 0; again < 2; ++again) {
    CHECK(code_thrown_by([&, &one = client] { read_text(one); }) == tls::errc::truncated);
  }
}

TEST_CASE("bytes that were changed on the way are noticed, and nothing of them is read") {
  plain_pair ends = plain();
  const int wire = ends.client.native_handle();
  secure_pair both = [&] {
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
  CHECK(code_thrown_by([&] { read_text(both.server); }) == tls::errc::protocol_error);
  CHECK(code_thrown_by([&] { both.server.write_all("x"); }) == tls::errc::protocol_error);
  CHECK(code_thrown_by([&] { read_text(both.client); }) == tls::errc::refused);
}

TEST_CASE("a server answers nonsense with an error, and its next client is served") {
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

TEST_CASE("an interrupted read has read nothing, and the stream goes on") {
  secure_pair ends = trust().pair();
  CHECK_FALSE(move_on_after(1ms, [&] { read_text(ends.client); }));
  auto reading = spin([&] { return read_text(ends.client); });
  snooze();
  reading.raise(oops());
  CHECK_THROWS_AS(reading.await(), oops);
  ends.server.write_all("whole");
  CHECK(read_text(ends.client) == "whole");
}

TEST_CASE("an interrupted write leaves whole records: what comes next is read behind them") {
  secure_pair ends = trust().pair();
  const std::string piece(10000, 'x');
  std::size_t written = 0;
  while (move_on_after(5ms, [&] { written += ends.client.write(testing::bytes_of(piece)); })) {
  }
  // The last write may have been sealed, and not counted because its scope had ended.
  std::string all;
  auto rest = spin([&] {
    ends.client.write_all("the end");
    ends.client.shutdown(SHUT_WR);
  });
  all = read_all(ends.server);
  rest.await();
  CHECK(all.size() >= written + 7);
  CHECK(all.substr(all.size() - 7) == "the end");
  CHECK(all.find_first_not_of('x') == all.size() - 7);
}

TEST_CASE("what an interrupted write has left is sent when its fiber reads") {
  secure_pair ends = trust().pair();
  const std::string much(50'000'000, 'x');
  CHECK_FALSE(move_on_after(20ms, [&] { ends.client.write_all(much); }));
  std::size_t received = 0;
  auto reading = spin([&] {
    std::vector<std::byte> buffer(1 << 16);
    while (const std::size_t size = ends.server.read(buffer)) received += size;
  });
  CHECK_FALSE(move_on_after(50ms, [&] { read_text(ends.client); }));
  const std::size_t before = received;
  CHECK(before > 100'000);
  ends.client.close();
  reading.await();
  CHECK(received == before);
}

TEST_CASE("a write of a fiber that is to end anyway writes nothing") {
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

TEST_CASE("closing takes a moment at most when the peer does not read") {
  secure_pair ends = trust().pair();
  const std::string much(50'000'000, 'x');
  CHECK_FALSE(move_on_after(20ms, [&] { ends.client.write_all(much); }));
  using clock = std::chrono::steady_clock;
  const auto begun = clock::now();
  try {
    const tls::stream gone = std::move(ends.client);
    throw oops();
  } catch (const oops&) {
  }
  CHECK(clock::now() - begun < 5s);
}

TEST_CASE("what a peer said before it reset the connection can be read, and then the reset") {
  net::tcp_listener listener(net::endpoint::loopback(0));
  auto answering = spin([&] {
    tls::stream peer = tls::stream::accept(listener.accept(), trust().server);
    peer.write_all("before");
    CHECK(read_text(peer) == "understood");
    // Without a farewell: connect(2) to nothing resets.
    const sockaddr nothing{AF_UNSPEC, {}};
    CHECK(::connect(peer.native_handle(), &nothing, sizeof nothing) == 0);
  });
  tls::stream client = tls::stream::connect(tcp_stream::connect(listener.local_endpoint()),
                                            trust().client, "example.test");
  CHECK(read_text(client) == "before");
  client.write_all("understood");
  answering.await();
  CHECK(code_thrown_by([&] { read_text(client); }) == std::errc::connection_reset);
}

TEST_CASE("a client that says all at once and goes is heard out") {
  plain_pair near = plain();
  plain_pair far = plain();
  std::string back;
  group relay;
  relay.spin([&] { carry(far.client, near.server, back); });
  relay.spin([&] {
    std::vector<std::byte> hello(4096);
    hello.resize(near.server.read(hello));
    far.client.write_all(hello);
    scripted_stream rest;
    copy(near.server, rest);
    // The client is gone, and with it whoever would read the tickets that the server sends.
    far.client.write_all(testing::bytes_of(rest.written()));
    far.client.close();
  });
  relay.spin([&] {
    tls::stream client =
        tls::stream::connect(std::move(near.client), trust().client, "example.test");
    client.write_all("all that I have to say");
  });
  tls::stream server = tls::stream::accept(std::move(far.server), trust().server);
  CHECK(read_all(server) == "all that I have to say");
  CHECK(code_thrown_by([&] { server.write_all("x"); }) == std::errc::broken_pipe);
}

TEST_CASE("a forked child that drops its copy of a stream says nothing for its parent") {
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

TEST_CASE("an error is that of the call that it comes from, not of another fiber's") {
  std::vector<std::error_code> codes(20);
  group all;
  for (std::size_t index = 0; index < codes.size(); ++index) {
    all.spin([&codes, index] {
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
  all.await_all();
  for (std::size_t index = 0; index < codes.size(); ++index) {
    CAPTURE(index);
    const std::error_code expected[] = {
        tls::errc::bad_certificate, {}, tls::errc::truncated, tls::errc::protocol_error};
    CHECK(codes[index] == expected[index % 4]);
  }
  CHECK(ERR_peek_error() == 0);
}

}  // namespace
