// SPDX-License-Identifier: MIT
// Unix sockets: streams, listeners and their paths, and descriptors that are passed on.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/descriptors.hpp"
#include "io/scratch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::stream_pair;
using net::unix_listener;
using net::unix_stream;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::descriptor_letter;
using testing::error_of;
using testing::make_pipe;
using testing::oops;
using testing::scratch_directory;
using testing::until_waiting;

namespace {

static_assert(std::is_nothrow_move_constructible_v<unix_stream>);
static_assert(std::is_nothrow_move_constructible_v<unix_listener>);
static_assert(!std::is_copy_constructible_v<unix_stream>);

std::string read_text(unix_stream& stream, std::size_t limit = 64) {
  std::vector<std::byte> buffer(limit);
  return testing::text_of(std::span(buffer).first(stream.read(buffer)));
}

endpoint abstract_name() {
  static int last = 0;
  return endpoint::unix_abstract("motet-test-" + std::to_string(::getpid()) + "-" +
                                 std::to_string(++last));
}

}  // namespace

TEST_CASE("stream_pair() carries bytes both ways until one end is closed", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& client = ends.first;
    unix_stream& server = ends.second;
    const std::string large(1 << 20, 'x');
    auto writer = spin([&] { client.write_all(large); });
    std::string text;
    while (text.size() < large.size()) text += read_text(server, 65'536);
    CHECK(text == large);
    writer.await();
    server.write_all("back");
    CHECK(read_text(client) == "back");
    client.shutdown(SHUT_WR);
    CHECK(read_text(server).empty());
    server.close();
    CHECK(error_of([&] { client.write_all("x"); }) == std::errc::broken_pipe);
    CHECK(error_of([&] { read_text(server); }) == bad_descriptor);
  });
}

TEST_CASE("unix_listener creates its path, and removes it", "[unix]") {
  run([] {
    const scratch_directory root;
    const endpoint address = endpoint::unix_path(root.name() + "/socket");
    {
      unix_listener first(address);
      CHECK(root.has("socket"));
      CHECK(first.local_endpoint() == address);
      CHECK(error_of([&] { unix_listener second(address); }) == std::errc::address_in_use);
      auto client = spin([&] {
        unix_stream peer = unix_stream::connect(address);
        peer.write_all("hello");
        CHECK(peer.peer_endpoint() == address);
        return read_text(peer);
      });
      unix_stream accepted = first.accept();
      CHECK(read_text(accepted) == "hello");
      CHECK(accepted.peer_endpoint().to_string() == "unix:");
      accepted.write_all("welcome");
      CHECK(client.await() == "welcome");
      unix_listener target = std::move(first);
      CHECK(root.has("socket"));
      CHECK(first.native_handle() == -1);
    }
    CHECK_FALSE(root.has("socket"));
    CHECK(error_of([&] { unix_stream::connect(address); }) == std::errc::no_such_file_or_directory);
  });
}

TEST_CASE("unix_listener replaces the path of a dead program, and no other file", "[unix]") {
  run([] {
    const scratch_directory root;
    const endpoint address = endpoint::unix_path(root.name() + "/socket");
    {
      unix_listener dead(address);
      const fd unused = dead.release();
    }
    REQUIRE(root.has("socket"));
    {
      unix_listener successor(address);
      auto client = spin([&] { unix_stream::connect(address); });
      successor.accept();
      client.await();
    }
    CHECK_FALSE(root.has("socket"));
    fd(::openat(root.get(), "socket", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK(error_of([&] { unix_listener second(address); }) == std::errc::address_in_use);
    CHECK(root.has("socket"));
  });
}

TEST_CASE("unix_listener::close() does not remove a path that is another file by now", "[unix]") {
  run([] {
    const scratch_directory root;
    unix_listener listener(endpoint::unix_path(root.name() + "/socket"));
    REQUIRE(::renameat(root.get(), "socket", root.get(), "moved") == 0);
    fd(::openat(root.get(), "socket", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    listener.close();
    CHECK(root.has("socket"));
    CHECK(root.has("moved"));
  });
}

TEST_CASE("unix_listener::close() does not remove the path of a newer listener", "[unix]") {
  run([] {
    const scratch_directory root;
    const endpoint address = endpoint::unix_path(root.name() + "/socket");
    for (int round = 0; round < 20; ++round) {
      unix_listener old(address);
      std::optional<unix_listener> next;
      auto acceptor = spin([&] {
        std::error_code error;
        old.accept(error);
        next.emplace(address);
      });
      until_waiting(acceptor);
      old.close();
      acceptor.await();
      CHECK(root.has("socket"));
      auto client = spin([&] { unix_stream::connect(address); });
      next->accept();
      client.await();
    }
    unix_listener listener(address);
    unix_listener& alias = listener;
    listener = std::move(alias);
    CHECK(root.has("socket"));
  });
}

TEST_CASE("unix_listener leaves its path alone in a forked child", "[unix]") {
  const scratch_directory root;
  run([&] {
    unix_listener listener(endpoint::unix_path(root.name() + "/socket"));
    const pid_t child = ::fork();
    if (child == 0) {
      listener.close();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(root.has("socket"));
  });
  CHECK_FALSE(root.has("socket"));
}

TEST_CASE("endpoint::unix_abstract() is in no file system, and vanishes with its socket",
          "[unix]") {
  run([] {
    const endpoint address = abstract_name();
    {
      unix_listener listener(address);
      auto client = spin(
          [&] { return read_text(*std::make_unique<unix_stream>(unix_stream::connect(address))); });
      unix_stream accepted = listener.accept();
      accepted.write_all("hi");
      CHECK(client.await() == "hi");
    }
    CHECK(error_of([&] { unix_stream::connect(address); }) == std::errc::connection_refused);
    std::error_code error;
    CHECK(unix_stream::connect(address, error).native_handle() == -1);
    CHECK(error == std::errc::connection_refused);
  });
}

TEST_CASE("unix_stream::connect() and unix_listener name the path in their errors", "[unix]") {
  run([] {
    try {
      unix_stream::connect(endpoint::unix_path("/nowhere/at/all"));
      FAIL("connected");
    } catch (const std::system_error& error) {
      CHECK(std::string(error.what()).starts_with("connect to unix:/nowhere/at/all: "));
    }
    try {
      unix_listener(endpoint::unix_path("/nowhere/at/all"));
      FAIL("listens");
    } catch (const std::system_error& error) {
      CHECK(std::string(error.what()).starts_with("listen on unix:/nowhere/at/all: "));
    }
  });
}

TEST_CASE("unix_listener::serve() serves each connection in a fiber", "[unix]") {
  run([] {
    const endpoint address = abstract_name();
    unix_listener listener(address);
    auto server = spin(
        [&] { listener.serve([](unix_stream peer) { peer.write_all(read_text(peer) + "!"); }); });
    {
      group clients;
      for (int i = 0; i < 20; ++i) {
        clients.spin([&, i] {
          unix_stream peer = unix_stream::connect(address);
          peer.write_all(std::to_string(i));
          CHECK(read_text(peer) == std::to_string(i) + "!");
        });
      }
      clients.await_all();
    }
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
}

TEST_CASE("unix_stream::send_fd() passes a descriptor, in order with the bytes around it",
          "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& client = ends.first;
    unix_stream& server = ends.second;
    const auto pipe = make_pipe();
    client.write_all("before");
    client.send_fd(pipe.second());
    client.write_all("after");
    CHECK(read_text(server, 6) == "before");
    std::optional<fd> copy = server.receive_fd();
    REQUIRE(copy);
    CHECK((::fcntl(copy->get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(copy->get() != pipe.second());
    io::write_all(copy->get(), bytes_of("through"));
    CHECK(testing::take_all(pipe.first()) == "through");
    CHECK(read_text(server) == "after");
    client.close();
    CHECK_FALSE(server.receive_fd());
  });
}

TEST_CASE("unix_stream::receive_fd() waits, and loses no descriptor when it is interrupted",
          "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& client = ends.first;
    unix_stream& server = ends.second;
    const auto pipe = make_pipe();
    auto receiver = spin([&] { return server.receive_fd().has_value(); });
    until_waiting(receiver);
    CHECK(receiver.raise(oops()));
    CHECK_THROWS_AS(receiver.await(), oops);
    auto second_receiver = spin([&] { return server.receive_fd().has_value(); });
    until_waiting(second_receiver);
    client.send_fd(pipe.first());
    CHECK(second_receiver.await());
    CHECK(error_of([&] { client.send_fd(-1); }) == bad_descriptor);
  });
}

TEST_CASE("unix_stream::read() closes a descriptor that it does not return", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& client = ends.first;
    unix_stream& server = ends.second;
    const auto pipe = make_pipe();
    const std::size_t descriptors = testing::open_descriptors();
    const descriptor_letter letter(pipe.first());
    REQUIRE(::sendmsg(client.native_handle(), &letter.message, 0) == 1);
    CHECK(read_text(server) == "d");
    CHECK(testing::open_descriptors() == descriptors);
    client.write_all("x");
    CHECK(error_of([&] { server.receive_fd(); }) == std::errc::no_message);
    const std::array<int, 2> two{pipe.first(), pipe.second()};
    const descriptor_letter pair(two);
    REQUIRE(::sendmsg(client.native_handle(), &pair.message, 0) == 1);
    CHECK(server.receive_fd());
    CHECK(testing::open_descriptors() == descriptors);
    unix_stream closed_stream;
    CHECK(error_of([&] { closed_stream.send_fd(0); }) == bad_descriptor);
    CHECK(error_of([&] { closed_stream.receive_fd(); }) == bad_descriptor);
  });
}

TEST_CASE("unix_stream::release() ends the stream's fibers, and leaves it connected",
          "[unix][tcp]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& client = ends.first;
    unix_stream& server = ends.second;
    auto reader = spin([&] { read_text(client); });
    until_waiting(reader);
    const fd descriptor = client.release();
    CHECK(error_of([&] { reader.await(); }) == bad_descriptor);
    CHECK(client.native_handle() == -1);
    server.write_all("still there");
    CHECK(testing::take_all(descriptor.get()) == "still there");
    CHECK_FALSE(client.release());
    unix_stream new_stream(fd(::dup(descriptor.get())));
    server.write_all("again");
    CHECK(read_text(new_stream) == "again");
  });
}

TEST_CASE("unix_stream::release() works for a stream that two threads have used", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& client = ends.first;
    unix_stream& server = ends.second;
    thread worker([] { sleep(); });
    for (int i = 0; i < 3; ++i) {
      auto reader = worker.spin([&] { return read_text(client); });
      server.write_all("there");
      CHECK(reader.await() == "there");
      server.write_all("here");
      CHECK(read_text(client) == "here");
    }
    fd descriptor = client.release();
    REQUIRE(descriptor);
    unix_stream new_stream(std::move(descriptor));
    auto reader = worker.spin([&] { return read_text(new_stream); });
    server.write_all("and back");
    CHECK(reader.await() == "and back");
    worker.cancel();
  });
}

TEST_CASE("tcp_listener takes over a listening descriptor in either mode", "[tcp]") {
  run([] {
    for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
      fd descriptor = testing::make_listener(mode);
      const std::uint16_t port = testing::port_of(descriptor.get());
      net::tcp_listener listener(std::move(descriptor));
      auto acceptor = spin([&] { return listener.accept().native_handle() >= 0; });
      until_waiting(acceptor);
      auto client = net::tcp_stream::connect(endpoint::loopback(port));
      CHECK(acceptor.await());
      auto waiter = spin([&] { listener.accept(); });
      until_waiting(waiter);
      const fd released = listener.release();
      CHECK(released);
      CHECK(error_of([&] { waiter.await(); }) == bad_descriptor);
      CHECK(testing::connect_to(port));
    }
  });
}
