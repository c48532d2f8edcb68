// SPDX-License-Identifier: MIT
// Whom the two ends of a TLS connection believe.
#include <string>

#include "tls/pairs.hpp"

namespace {

using namespace testing;

/// What the client makes of a server that has `certificate`.
refusals refused_with(const tls::certificate& certificate,
                      const std::string& host = "example.test") {
  return refused(trust().client, tls::server_context({.certificates = {certificate}}), host);
}

TEST_CASE("tls::client_context rejects a server whose certificate is for another host") {
  const refusals refusal = refused(trust().client, trust().server, "other.test");
  CHECK(refusal.client == tls::errc::bad_certificate);
  CHECK(contains(refusal.text_of_client, "other.test"));
  CHECK(contains(refusal.text_of_client, "hostname mismatch"));
  CHECK(refusal.server == tls::errc::refused);
}

TEST_CASE("tls::client_context accepts each name and address of a certificate") {
  for (const char* host : {"example.test", "EXAMPLE.test", "example.test.", "127.0.0.1"}) {
    CAPTURE(host);
    CHECK_FALSE(refused(trust().client, trust().server, host).client);
  }
  CHECK(refused(trust().client, trust().server, "127.0.0.2").client == tls::errc::bad_certificate);
  CHECK(refused(trust().client, trust().server, "::1").client == tls::errc::bad_certificate);
}

TEST_CASE("tls::client_context does not accept the common name of a certificate") {
  authority issuer;
  const tls::client_context client({.trusted_file = issuer.file()});
  const tls::server_context server({.certificates = {issuer.issue("example.test", {})}});
  CHECK(refused(client, server).client == tls::errc::bad_certificate);
}

TEST_CASE("tls::client_context takes a wildcard for one whole label") {
  authority issuer;
  const tls::client_context client({.trusted_file = issuer.file()});
  const tls::server_context server(
      {.certificates = {issuer.issue("wild", {.names = "DNS:*.example.test,DNS:f*.test"})}});
  CHECK_FALSE(refused(client, server, "www.example.test").client);
  CHECK(refused(client, server, "example.test").client == tls::errc::bad_certificate);
  CHECK(refused(client, server, "a.b.example.test").client == tls::errc::bad_certificate);
  CHECK(refused(client, server, "foo.test").client == tls::errc::bad_certificate);
}

TEST_CASE("tls::client_context rejects a certificate that has expired or is not valid yet") {
  authority issuer;
  const tls::client_context client({.trusted_file = issuer.file()});
  const auto judge = [&](long begins, long ends) {
    const tls::certificate certificate =
        issuer.issue("timed", {.names = "DNS:example.test", .begins = begins, .ends = ends});
    return refused(client, tls::server_context({.certificates = {certificate}}));
  };
  const refusals late = judge(-9, -1);
  CHECK(late.client == tls::errc::bad_certificate);
  CHECK(contains(late.text_of_client, "expired"));
  const refusals early = judge(1, 9);
  CHECK(early.client == tls::errc::bad_certificate);
  CHECK(contains(early.text_of_client, "not yet valid"));
}

TEST_CASE("tls::client_context rejects a certificate that no trusted authority has signed") {
  authority stranger;
  CHECK(refused_with(stranger.issue("server", {.names = "DNS:example.test"})).client ==
        tls::errc::bad_certificate);
  const refusals alone = refused_with(stranger.self_signed("alone", {.names = "DNS:example.test"}));
  CHECK(alone.client == tls::errc::bad_certificate);
  CHECK(contains(alone.text_of_client, "self-signed"));
}

TEST_CASE("tls::client_context trusts no authority of a test by default") {
  CHECK(refused(tls::client_context(), trust().server).client == tls::errc::bad_certificate);
}

TEST_CASE("tls::client_options::verify accepts any server if it is false") {
  const tls::client_context careless({.verify = false});
  CHECK_FALSE(refused(careless, trust().server, "other.test").client);
  CHECK_FALSE(refused(careless, trust().server, "").client);
}

TEST_CASE("tls::stream::connect() rejects an invalid host name") {
  for (const std::string& host : {std::string(), std::string("a\0b", 3), std::string(256, 'x'),
                                  std::string(".example.test")}) {
    CAPTURE(host);
    CHECK_THROWS_AS(tls::stream::connect(plain().client, trust().client, host),
                    std::invalid_argument);
  }
}

TEST_CASE("tls::server_options::client_trusted_file accepts certificates of that authority only") {
  authority of_clients;
  const tls::server_context server(
      {.certificates = {trust().certificate}, .client_trusted_file = of_clients.file()});
  const auto context_with = [&](const tls::certificate& certificate) {
    return tls::client_context({.trusted_file = trust().issuer.file(), .own = certificate});
  };
  const tls::certificate certificate = of_clients.issue("somebody", {});
  {
    auto [client, peer] = secured(context_with(certificate), server);
    CHECK(contains(peer.peer_certificate(), "BEGIN CERTIFICATE"));
    CHECK(contains(client.peer_certificate(), "BEGIN CERTIFICATE"));
    CHECK(client.peer_certificate() != peer.peer_certificate());
  }
  const refusals refusal = refused(context_with({}), server);
  CHECK(refusal.client == tls::errc::refused);
  CHECK(contains(refusal.text_of_client, "certificate required"));
  CHECK(refusal.server == tls::errc::protocol_error);

  authority stranger;
  const refusals unknown = refused(context_with(stranger.issue("somebody", {})), server);
  CHECK(unknown.client == tls::errc::refused);
  CHECK(unknown.server == tls::errc::bad_certificate);
}

TEST_CASE("tls::stream::peer_certificate() is empty for a client without a certificate") {
  auto [client, server] = trust().pair();
  CHECK(server.peer_certificate().empty());
}

TEST_CASE("tls::server_options::certificates are chosen by the name that the client sends") {
  authority issuer;
  const tls::client_context client({.trusted_file = issuer.file()});
  const tls::server_context server({.certificates = {
                                        issuer.issue("first", {.names = "DNS:first.test"}),
                                        issuer.issue("second", {.names = "DNS:second.test"}),
                                    }});
  CHECK_FALSE(refused(client, server, "first.test").client);
  CHECK_FALSE(refused(client, server, "second.test").client);
  const refusals third = refused(client, server, "third.test");
  CHECK(third.client == tls::errc::bad_certificate);
}

TEST_CASE("tls contexts name the file that they cannot use, and the reason") {
  authority issuer;
  const tls::certificate good = issuer.issue("good", {});
  const std::string nonsense = issuer.file_with("nonsense.pem", "nonsense\n");
  const auto client_error = [](const tls::client_options& options) {
    try {
      const tls::client_context context(options);
    } catch (const std::system_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(contains(client_error({.trusted_file = "/nowhere.pem"}), "/nowhere.pem"));
  CHECK(contains(client_error({.trusted_file = "/nowhere.pem"}), "No such file"));
  CHECK(contains(client_error({.trusted_file = nonsense}), "nonsense.pem"));
  CHECK(contains(client_error({.own = {nonsense, good.key_file}}), "nonsense.pem"));
  CHECK(contains(client_error({.own = {good.chain_file, nonsense}}), "nonsense.pem"));
  authority second_issuer;
  const std::string mismatch =
      client_error({.own = {good.chain_file, second_issuer.issue("other", {}).key_file}});
  CHECK(contains(mismatch, "other.key"));
  CHECK(contains(mismatch, "mismatch"));

  CHECK_THROWS_AS(tls::server_context(tls::server_options()), std::invalid_argument);
  CHECK_THROWS_AS(tls::client_context({.protocols = {""}}), std::invalid_argument);
  CHECK_THROWS_AS(tls::client_context({.protocols = {std::string(256, 'x')}}),
                  std::invalid_argument);
}

TEST_CASE("tls::server_context rejects an encrypted key, and asks nobody for a password") {
  authority issuer;
  const tls::certificate sealed = issuer.issue("sealed", {.password = "secret"});
  CHECK_THROWS_AS(tls::server_context({.certificates = {sealed}}), std::system_error);
}

}  // namespace
