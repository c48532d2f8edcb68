// SPDX-License-Identifier: MIT
// A client and a server that have shaken hands.
#pragma once

#include <motet/motet.hpp>
#include <motet/tls.hpp>
#include <optional>
#include <string>
#include <utility>

#include "support.hpp"
#include "tls/certificates.hpp"

namespace testing {

using namespace motet;
using net::tcp_stream;

struct plain_pair {
  tcp_stream client;
  tcp_stream server;
};

inline plain_pair plain() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  return {tcp_stream(fd(ends[0])), tcp_stream(fd(ends[1]))};
}

struct secure_pair {
  tls::stream client;
  tls::stream server;
};

/// The two ends for `host`, both at once, as each waits for the other.
inline secure_pair secured(const tls::client_context& client, const tls::server_context& server,
                           const std::string& host = "example.test") {
  plain_pair ends = plain();
  auto [first, second] =
      await_all([&] { return tls::stream::connect(std::move(ends.client), client, host); },
                [&] { return tls::stream::accept(std::move(ends.server), server); });
  return {std::move(first), std::move(second)};
}

/// How a handshake failed at either end; the text is empty if it did not.
struct refusals {
  std::error_code client;
  std::error_code server;
  std::string text_of_client;
  std::string text_of_server;
};

inline refusals refused(const tls::client_context& client, const tls::server_context& server,
                        const std::string& host = "example.test") {
  plain_pair ends = plain();
  refusals result;
  const auto note = [](std::error_code& code, std::string& text, auto call) {
    return [&code, &text, call]() mutable {
      try {
        tls::stream stream = call();
        // A client in TLS 1.3 learns only now what the server makes of its certificate.
        std::byte byte;
        stream.shutdown(SHUT_WR);
        stream.read({&byte, 1});
      } catch (const std::system_error& error) {
        code = error.code();
        text = error.what();
      }
    };
  };
  group handshakes;
  handshakes.spin(note(result.client, result.text_of_client,
                       [&] { return tls::stream::connect(std::move(ends.client), client, host); }));
  handshakes.spin(note(result.server, result.text_of_server,
                       [&] { return tls::stream::accept(std::move(ends.server), server); }));
  handshakes.await_all();
  return result;
}

/// An authority, a server that has a certificate of it, and a client that trusts it.
struct trusting {
  authority issuer;
  tls::certificate certificate = issuer.issue("server", {.names = "DNS:example.test,IP:127.0.0.1"});
  tls::server_context server{tls::server_options{.certificates = {certificate}}};
  tls::client_context client{tls::client_options{.trusted_file = issuer.file()}};

  secure_pair pair() const { return secured(client, server); }
};

/// Made once: keys and certificates take a moment.
inline const trusting& trust() {
  static const trusting instance;
  return instance;
}

inline std::string read_text(tls::stream& stream, std::size_t limit = 64) {
  std::vector<std::byte> buffer(limit);
  const std::size_t size = stream.read(buffer);
  return text_of(std::span(buffer).first(size));
}

inline std::string read_all(tls::stream& stream) {
  std::string text;
  for (std::string part = read_text(stream, 1 << 16); !part.empty();
       part = read_text(stream, 1 << 16)) {
    text += part;
  }
  return text;
}

}  // namespace testing
