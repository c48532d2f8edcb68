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
  refusals found;
  const auto note = [](std::error_code& code, std::string& text, auto call) {
    return [&code, &text, call]() mutable {
      try {
        tls::stream made = call();
        // A client in TLS 1.3 learns only now what the server makes of its certificate.
        std::byte one;
        made.shutdown(SHUT_WR);
        made.read({&one, 1});
      } catch (const std::system_error& error) {
        code = error.code();
        text = error.what();
      }
    };
  };
  group both;
  both.spin(note(found.client, found.text_of_client,
                 [&] { return tls::stream::connect(std::move(ends.client), client, host); }));
  both.spin(note(found.server, found.text_of_server,
                 [&] { return tls::stream::accept(std::move(ends.server), server); }));
  both.await_all();
  return found;
}

/// An authority, a server that has a certificate of it, and a client that trusts it.
struct trusting {
  authority by;
  tls::certificate own = by.issue("server", {.names = "DNS:example.test,IP:127.0.0.1"});
  tls::server_context server{tls::server_options{.certificates = {own}}};
  tls::client_context client{tls::client_options{.trusted_file = by.file()}};

  secure_pair pair() const { return secured(client, server); }
};

/// Made once: keys and certificates take a moment.
inline const trusting& trust() {
  static const trusting made;
  return made;
}

inline std::string read_text(tls::stream& stream, std::size_t most = 64) {
  std::vector<std::byte> buffer(most);
  const std::size_t size = stream.read(buffer);
  return text_of(std::span(buffer).first(size));
}

inline std::string read_all(tls::stream& stream) {
  std::string all;
  for (std::string part = read_text(stream, 1 << 16); !part.empty();
       part = read_text(stream, 1 << 16)) {
    all += part;
  }
  return all;
}

}  // namespace testing
