// SPDX-License-Identifier: MIT
// Whom the two ends of a TLS connection believe.
#include <string>

#include "tls/pairs.hpp"

namespace {

using namespace testing;

/// What the client makes of a server that has `shown`.
refusals refused_with(const tls::certificate& shown, const std::string& host = "example.test") {
  return refused(trust().client, tls::server_context({.certificates = {shown}}), host);
}

TEST_CASE("a server whose certificate is for another host is not believed") {
  const refusals other = refused(trust().client, trust().server, "other.test");
  CHECK(other.client == tls::errc::bad_certificate);
  CHECK(contains(other.text_of_client, "other.test"));
  CHECK(contains(other.text_of_client, "hostname mismatch"));
  CHECK(other.server == tls::errc::refused);
}

TEST_CASE("a server is believed under each name and address of its certificate") {
  for (const char* host : {"example.test", "EXAMPLE.test", "example.test.", "127.0.0.1"}) {
    CAPTURE(host);
    CHECK_FALSE(refused(trust().client, trust().server, host).client);
  }
  CHECK(refused(trust().client, trust().server, "127.0.0.2").client == tls::errc::bad_certificate);
  CHECK(refused(trust().client, trust().server, "::1").client == tls::errc::bad_certificate);
}

TEST_CASE("a server is not believed for the common name of its certificate") {
  authority by;
  const tls::client_context client({.trusted_file = by.file()});
  const tls::server_context server({.certificates = {by.issue("example.test", {})}});
  CHECK(refused(client, server).client == tls::errc::bad_certificate);
}

TEST_CASE("a wildcard stands for one whole label") {
  authority by;
  const tls::client_context client({.trusted_file = by.file()});
  const tls::server_context server(
      {.certificates = {by.issue("wild", {.names = "DNS:*.example.test,DNS:f*.test"})}});
  CHECK_FALSE(refused(client, server, "www.example.test").client);
  CHECK(refused(client, server, "example.test").client == tls::errc::bad_certificate);
  CHECK(refused(client, server, "a.b.example.test").client == tls::errc::bad_certificate);
  CHECK(refused(client, server, "foo.test").client == tls::errc::bad_certificate);
}

TEST_CASE("a certificate that has expired, or has not begun, is not believed") {
  authority by;
  const tls::client_context client({.trusted_file = by.file()});
  const auto judge = [&](long begins, long ends) {
    const tls::certificate shown =
        by.issue("timed", {.names = "DNS:example.test", .begins = begins, .ends = ends});
    return refused(client, tls::server_context({.certificates = {shown}}));
  };
  const refusals late = judge(-9, -1);
  CHECK(late.client == tls::errc::bad_certificate);
  CHECK(contains(late.text_of_client, "expired"));
  const refusals early = judge(1, 9);
  CHECK(early.client == tls::errc::bad_certificate);
  CHECK(contains(early.text_of_client, "not yet valid"));
}

TEST_CASE("a certificate that nobody trusted has signed is not believed") {
  authority stranger;
  CHECK(refused_with(stranger.issue("server", {.names = "DNS:example.test"})).client ==
        tls::errc::bad_certificate);
  const refusals alone = refused_with(stranger.self_signed("alone", {.names = "DNS:example.test"}));
  CHECK(alone.client == tls::errc::bad_certificate);
  CHECK(contains(alone.text_of_client, "self-signed"));
}

TEST_CASE("the system trusts no authority of a test") {
  CHECK(refused(tls::client_context(), trust().server).client == tls::errc::bad_certificate);
}

TEST_CASE("a client that does not verify believes whoever answers") {
  const tls::client_context careless({.verify = false});
  CHECK_FALSE(refused(careless, trust().server, "other.test").client);
  CHECK_FALSE(refused(careless, trust().server, "").client);
}

TEST_CASE("a host must have a name") {
  for (const std::string& host : {std::string(), std::string("a\0b", 3), std::string(256, 'x'),
                                  std::string(".example.test")}) {
    CAPTURE(host);
    CHECK_THROWS_AS(tls::stream::connect(plain().client, trust().client, host),
                    std::invalid_argument);
  }
}

TEST_CASE("a server that asks for certificates believes clients that an authority has signed") {
  authority of_clients;
  const tls::server_context server(
      {.certificates = {trust().own}, .client_trusted_file = of_clients.file()});
  const auto with = [&](const tls::certificate& own) {
    return tls::client_context({.trusted_file = trust().by.file(), .own = own});
  };
  const tls::certificate known = of_clients.issue("somebody", {});
  {
    auto [client, answering] = secured(with(known), server);
    CHECK(contains(answering.peer_certificate(), "BEGIN CERTIFICATE"));
    CHECK(contains(client.peer_certificate(), "BEGIN CERTIFICATE"));
    CHECK(client.peer_certificate() != answering.peer_certificate());
  }
  const refusals without = refused(with({}), server);
  CHECK(without.client == tls::errc::refused);
  CHECK(contains(without.text_of_client, "certificate required"));
  CHECK(without.server == tls::errc::protocol_error);

  authority stranger;
  const refusals unknown = refused(with(stranger.issue("somebody", {})), server);
  CHECK(unknown.client == tls::errc::refused);
  CHECK(unknown.server == tls::errc::bad_certificate);
}

TEST_CASE("a client without a certificate has none to show") {
  auto [client, server] = trust().pair();
  CHECK(server.peer_certificate().empty());
}

TEST_CASE("a server with several certificates shows the one for the name it is asked by") {
  authority by;
  const tls::client_context client({.trusted_file = by.file()});
  const tls::server_context server({.certificates = {
                                        by.issue("first", {.names = "DNS:first.test"}),
                                        by.issue("second", {.names = "DNS:second.test"}),
                                    }});
  CHECK_FALSE(refused(client, server, "first.test").client);
  CHECK_FALSE(refused(client, server, "second.test").client);
  const refusals third = refused(client, server, "third.test");
  CHECK(third.client == tls::errc::bad_certificate);
}

TEST_CASE("a context says which file it cannot use, and why") {
  authority by;
  const tls::certificate good = by.issue("good", {});
  const std::string nonsense = by.file_with("nonsense.pem", "nonsense\n");
  const auto client_error = [](const tls::client_options& how) {
    try {
      const tls::client_context made(how);
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
  authority other;
  const std::string mismatch =
      client_error({.own = {good.chain_file, other.issue("other", {}).key_file}});
  CHECK(contains(mismatch, "other.key"));
  CHECK(contains(mismatch, "mismatch"));

  CHECK_THROWS_AS(tls::server_context(tls::server_options()), std::invalid_argument);
  CHECK_THROWS_AS(tls::client_context({.protocols = {""}}), std::invalid_argument);
  CHECK_THROWS_AS(tls::client_context({.protocols = {std::string(256, 'x')}}),
                  std::invalid_argument);
}

TEST_CASE("an encrypted key is refused, and nobody is asked for a password") {
  authority by;
  const tls::certificate sealed = by.issue("sealed", {.password = "secret"});
  CHECK_THROWS_AS(tls::server_context({.certificates = {sealed}}), std::system_error);
}

}  // namespace
