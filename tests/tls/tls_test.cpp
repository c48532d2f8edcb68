// SPDX-License-Identifier: MIT
// What two ends of a TLS connection can rely on.
#include <string>

#include "fixtures.hpp"
#include "io/scripted_stream.hpp"
#include "quiet.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

TEST_CASE("tls::stream::write_all() and read() carry text both ways") {
  auto [client, server] = trust().pair();
  client.write_all("question");
  CHECK(read_text(server) == "question");
  server.write_all("answer");
  CHECK(read_text(client) == "answer");
  CHECK(client.version() == "TLSv1.3");
  CHECK(server.server_name() == "example.test");
  CHECK(client.protocol().empty());
}

TEST_CASE("tls::stream sends no byte as it was written") {
  plain_pair ends = plain();
  plain_pair relayed = plain();
  std::string traffic;
  group relay;
  const auto carry = [&](tcp_stream& source, tcp_stream& destination) {
    return [&] {
      std::vector<std::byte> buffer(1 << 16);
      while (const std::size_t size = source.read(buffer)) {
        traffic += text_of(std::span(buffer).first(size));
        destination.write_all(std::span<const std::byte>(buffer).first(size));
      }
    };
  };
  relay.spin(carry(ends.server, relayed.client));
  relay.spin(carry(relayed.client, ends.server));
  auto [client, server] = await_all(
      [&] { return tls::stream::connect(std::move(ends.client), trust().client, "example.test"); },
      [&] { return tls::stream::accept(std::move(relayed.server), trust().server); });
  client.write_all("a secret");
  CHECK(read_text(server) == "a secret");
  CHECK(traffic.size() > 100);
  CHECK(traffic.find("secret") == std::string::npos);
}

TEST_CASE("tls::stream carries pieces of any size whole and in order, both ways at once") {
  secure_pair ends = trust().pair();
  tls::stream& client = ends.client;
  tls::stream& server = ends.server;
  const auto pattern = [](std::size_t size, char first) {
    std::string text(size, '\0');
    for (char& letter : text) letter = first++;
    return text;
  };
  for (const std::size_t size : {1u, 100u, 4096u, 16384u, 16385u, 70000u, 1000000u}) {
    CAPTURE(size);
    const std::string forth = pattern(size, 'a');
    const std::string back = pattern(size, 'z');
    const auto take = [&](tls::stream& stream) {
      reader input(stream, size);
      return text_of(input.exactly(size));
    };
    auto [first, second, third, fourth] = await_all(
        [&] {
          client.write_all(forth);
          return 0;
        },
        [&] {
          server.write_all(back);
          return 0;
        },
        [&] { return take(server) == forth; }, [&] { return take(client) == back; });
    CHECK(third);
    CHECK(fourth);
  }
}

TEST_CASE("tls::stream::write_all() keeps its turn while several fibers write") {
  secure_pair ends = trust().pair();
  tls::stream& client = ends.client;
  tls::stream& server = ends.server;
  group writers;
  for (const char letter : {'a', 'b', 'c'}) {
    writers.spin([&client, letter] { client.write_all(std::string(100000, letter)); });
  }
  std::string text = std::string(100000, 'a') + std::string(100000, 'b');
  text += std::string(100000, 'c');
  reader input(server, text.size());
  CHECK(text_of(input.exactly(text.size())) == text);
}

TEST_CASE("tls::stream::read() serves several fibers in the order of their calls") {
  secure_pair ends = trust().pair();
  tls::stream& client = ends.client;
  tls::stream& server = ends.server;
  std::string order;
  group readers;
  for (const char letter : {'a', 'b', 'c'}) {
    readers.spin([&server, &order, letter] { order += letter + read_text(server, 1); });
  }
  snooze();
  client.write_all("123");
  readers.await_all();
  CHECK(order == "a1b2c3");
}

TEST_CASE("tls::stream works with reader, writer and copy() as any stream") {
  auto [client, server] = trust().pair();
  {
    writer output(client);
    output.write("a line\r\n");
    output.flush();
    reader input(server);
    CHECK(input.line() == "a line");
  }
  scripted_stream source({"another", "one"});
  scripted_stream sink;
  CHECK(copy(source, client) == 10);
  client.shutdown(SHUT_WR);
  CHECK(copy(server, sink) == 10);
  CHECK(sink.written() == "anotherone");
}

TEST_CASE("tls::stream::shutdown() ends what the peer reads, and the peer can still answer") {
  secure_pair ends = trust().pair();
  tls::stream& client = ends.client;
  tls::stream& server = ends.server;
  client.write_all("all");
  client.shutdown(SHUT_WR);
  CHECK(read_all(server) == "all");
  CHECK(read_text(server).empty());
  server.write_all("understood");
  CHECK(read_text(client) == "understood");
  CHECK(code_thrown_by([&] { client.write_all("more"); }) == std::errc::broken_pipe);
  client.shutdown(SHUT_WR);  // again: nothing happens
}

TEST_CASE("tls::stream tells its peer that it is closed or destroyed") {
  SECTION("closed") {
    auto [client, server] = trust().pair();
    client.close();
    CHECK(read_text(server).empty());
  }
  SECTION("destroyed") {
    auto [client, server] = trust().pair();
    {
      const tls::stream target = std::move(client);
    }
    CHECK(read_text(server).empty());
  }
  SECTION("destroyed by an exception") {
    auto [client, server] = trust().pair();
    try {
      const tls::stream target = std::move(client);
      throw oops();
    } catch (const oops&) {
    }
    CHECK(read_text(server).empty());
  }
  SECTION("destroyed in a fiber that is cancelled") {
    auto [client, server] = trust().pair();
    auto holder = spin([stream = std::move(client)]() mutable { read_text(stream); });
    snooze();
    holder.cancel();
    CHECK(read_text(server).empty());
  }
}

TEST_CASE("tls::stream::close() ends the calls of other fibers with bad_file_descriptor") {
  secure_pair ends = trust().pair();
  tls::stream& client = ends.client;
  std::error_code of_reader;
  std::error_code of_second;
  std::error_code of_writer;
  group waiters;
  waiters.spin([&] { of_reader = code_thrown_by([&] { read_text(client); }); });
  waiters.spin([&] { of_second = code_thrown_by([&] { read_text(client); }); });
  waiters.spin(
      [&] { of_writer = code_thrown_by([&] { client.write_all(std::string(10'000'000, 'x')); }); });
  snooze();
  client.close();
  waiters.await_all();
  CHECK(of_reader == std::errc::bad_file_descriptor);
  CHECK(of_second == std::errc::bad_file_descriptor);
  CHECK(of_writer == std::errc::bad_file_descriptor);
  CHECK(code_thrown_by([&] { client.write_all("x"); }) == std::errc::bad_file_descriptor);
  CHECK(client.version().empty());
  CHECK(client.native_handle() == -1);
}

TEST_CASE("tls::stream::protocol() is the one that the server prefers") {
  const tls::server_context server(
      {.certificates = {trust().certificate}, .protocols = {"second", "first"}});
  const auto offering = [&](std::vector<std::string> protocols) {
    return tls::client_context({.trusted_file = trust().issuer.file(), .protocols = protocols});
  };
  {
    auto [client, peer] = secured(offering({"first", "second"}), server);
    CHECK(client.protocol() == "second");
    CHECK(peer.protocol() == "second");
  }
  {
    auto [client, peer] = secured(offering({}), server);
    CHECK(client.protocol().empty());
    CHECK(peer.protocol().empty());
  }
  {
    auto [client, peer] = secured(offering({"first"}), trust().server);
    CHECK(client.protocol().empty());
  }
  const refusals refusal = refused(offering({"third"}), server);
  CHECK(refusal.client == tls::errc::refused);
  CHECK(refusal.server == tls::errc::protocol_error);
  CHECK(contains(refusal.text_of_client, "no application protocol"));
}

TEST_CASE("tls::client_context resumes the session of the connection before") {
  const tls::client_context client({.trusted_file = trust().issuer.file()});
  for (int round = 0; round < 3; ++round) {
    auto [client_end, server_end] = secured(client, trust().server);
    CHECK(client_end.resumed() == (round > 0));
    CHECK(server_end.resumed() == (round > 0));
    server_end.write_all("ticket");  // behind the tickets, which the client reads with it
    CHECK(read_text(client_end) == "ticket");
  }
}

TEST_CASE("tls::client_context does not resume a session for another host") {
  authority issuer;
  const tls::certificate certificate = issuer.issue("server", {.names = "DNS:a.test,DNS:b.test"});
  const tls::server_context server({.certificates = {certificate}});
  const tls::client_context client({.trusted_file = issuer.file()});
  for (const auto& [host, resumes] :
       {std::pair("a.test", false), std::pair("b.test", false), std::pair("a.test", true)}) {
    CAPTURE(host);
    auto [client_end, server_end] = secured(client, server, host);
    CHECK(client_end.resumed() == resumes);
    server_end.write_all("ticket");
    CHECK(read_text(client_end) == "ticket");
  }
}

TEST_CASE("tls::stream needs a third of a default stack for a handshake, with keys of any kind") {
  if (under_asan || under_tsan) return;  // whose frames are larger
  const spin_options small{.stack_size = std::size_t{32} * 1024};
  for (const char* kind : {"P-256", "P-521", "RSA", "ED25519"}) {
    CAPTURE(kind);
    authority issuer(kind);
    const tls::certificate certificate = issuer.issue("own", {.names = "DNS:example.test"});
    const tls::server_context server(
        {.certificates = {certificate}, .client_trusted_file = issuer.file()});
    const tls::client_context client({.trusted_file = issuer.file(), .own = certificate});
    plain_pair ends = plain();
    auto server_fiber = spin(small, [&] {
      tls::stream peer = tls::stream::accept(std::move(ends.server), server);
      peer.write_all(read_text(peer));
    });
    auto client_fiber = spin(small, [&] {
      tls::stream peer = tls::stream::connect(std::move(ends.client), client, "example.test");
      peer.write_all("echo");
      return read_text(peer);
    });
    CHECK(client_fiber.await() == "echo");
    server_fiber.await();
  }
}

TEST_CASE("tls::stream travels with its fiber, and is not used on two threads at once") {
  std::thread([] {
    run_here([] {
      secure_pair ends = trust().pair();
      tls::stream& client = ends.client;
      tls::stream& server = ends.server;
      motet::thread second_thread(quiet(), [] { motet::sleep(); });
      auto waiter = spin([&] { return read_text(client); });
      snooze();
      second_thread.call([&] {
        CHECK_THROWS_AS(client.write_all("x"), std::logic_error);
        std::error_code error;
        client.write_all(bytes_of("x"), error);
        CHECK(error == std::errc::operation_not_permitted);
      });
      server.write_all("one");
      CHECK(waiter.await() == "one");
      second_thread.call([&] { server.write_all("two"); });
      CHECK(second_thread.call([&] { return read_text(client); }) == "two");
    });
  }).join();
}

}  // namespace
