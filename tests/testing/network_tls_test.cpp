// SPDX-License-Identifier: MIT
// TLS runs on simulated hosts unchanged, and a run can be repeated if its key has signatures of one
// length. Contexts keep sessions, so each run makes its own.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <motet/testing.hpp>
#include <motet/tls.hpp>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "catch.hpp"
#include "testing/simulations.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::outcome;
using motet::testing::world;
using ::testing::require;
using namespace motet;

struct identity {
  ::testing::authority issuer{"ED25519"};
  tls::certificate certificate = issuer.issue("server", {.names = "DNS:server"});
};

const identity& server_identity() {
  static const identity instance;
  return instance;
}

void serve_echo(const tls::server_context& context) {
  net::tcp_listener listener(net::endpoint::any(443));
  listener.serve({.on_error = [](const std::exception_ptr&) {}}, [&](net::tcp_stream peer) {
    tls::stream stream = tls::stream::accept(std::move(peer), context);
    std::byte buffer[64];
    while (const std::size_t size = stream.read(buffer))
      stream.write_all(std::span(buffer).first(size));
  });
}

/// Returns: what came back of `text`.
std::string echo_of(const tls::client_context& context, const std::string& text) {
  tls::stream stream =
      tls::stream::connect(net::tcp_stream::connect("server", 443), context, "server");
  stream.write_all(text);
  stream.shutdown(SHUT_WR);
  return ::testing::read_all(stream);
}

/// With a crash, which may come at any time in the handshake, clients fail or get their answer.
void talk(world& in, bool crashes) {
  const tls::server_context server_side{
      tls::server_options{.certificates = {server_identity().certificate}}};
  const tls::client_context client_side{
      tls::client_options{.trusted_file = server_identity().issuer.file()}};
  host server = in.add("server", [&] { serve_echo(server_side); });
  in.until_idle();
  const std::string text(in.random(300), 'x');
  const fiber<void> client = spin([&] {
    try {
      with_timeout(5s, [&] { require(echo_of(client_side, text) == text, "the echo is whole"); });
    } catch (const std::system_error&) {
      require(crashes, "the client fails only in a crash");
    }
  });
  if (crashes) {
    sleep_for(in.random(30) * 1ms);
    in.crash(server);
  }
  client.await();
}

}  // namespace

TEST_CASE("tls::stream: a host's server answers, and the run can be repeated") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto function = [](world& in) { talk(in, false); };
    const outcome first = motet::testing::run({.seed = seed}, function);
    const outcome again = motet::testing::run({.seed = seed, .log = first.log}, function);
    INFO("seed " << seed << ": " << first.failure << again.failure);
    REQUIRE(first.passed);
    REQUIRE(again.passed);
    CHECK(again.log == first.log);
    CHECK(again.span == first.span);
  }
}

TEST_CASE("tls::stream: a server that crashes in a handshake leaves no client behind") {
  ::testing::passes([](world& in) { talk(in, true); }, 60);
}
