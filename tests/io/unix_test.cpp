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

std::string read_text(unix_stream& from, std::size_t most = 64) {
  std::vector<std::byte> buffer(most);
  return testing::text_of(std::span(buffer).first(from.read(buffer)));
}

endpoint abstract_name() {
  static int last = 0;
  return endpoint::unix_abstract("motet-test-" + std::to_string(::getpid()) + "-" +
                                 std::to_string(++last));
}

}  // namespace

TEST_CASE("a pair of streams carries bytes both ways until one end is closed", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& left = ends.first;
    unix_stream& right = ends.second;
    const std::string large(1 << 20, 'x');
    auto writer = spin([&] { left.write_all(large); });
    std::string found;
    while (found.size() < large.size()) found += read_text(right, 65'536);
    CHECK(found == large);
    writer.await();
    right.write_all("back");
    CHECK(read_text(left) == "back");
    left.shutdown(SHUT_WR);
    CHECK(read_text(right).empty());
    right.close();
    CHECK(error_of([&] { left.write_all("x"); }) == std::errc::broken_pipe);
    CHECK(error_of([&] { read_text(right); }) == bad_descriptor);
  });
}

TEST_CASE("a listener on a path makes it, and takes it away", "[unix]") {
  run([] {
    const scratch_directory in;
    const endpoint where = endpoint::unix_path(in.name() + "/socket");
    {
      unix_listener first(where);
      CHECK(in.has("socket"));
      CHECK(first.local_endpoint() == where);
      CHECK(error_of([&] { unix_listener second(where); }) == std::errc::address_in_use);
      auto client = spin([&] {
        unix_stream peer = unix_stream::connect(where);
        peer.write_all("hello");
        CHECK(peer.peer_endpoint() == where);
        return read_text(peer);
      });
      unix_stream accepted = first.accept();
      CHECK(read_text(accepted) == "hello");
      CHECK(accepted.peer_endpoint().to_string() == "unix:");
      accepted.write_all("welcome");
      CHECK(client.await() == "welcome");
      unix_listener moved = std::move(first);
      CHECK(in.has("socket"));
      CHECK(first.native_handle() == -1);
    }
    CHECK_FALSE(in.has("socket"));
    CHECK(error_of([&] { unix_stream::connect(where); }) == std::errc::no_such_file_or_directory);
  });
}

TEST_CASE("a path that a dead program has left is made anew, others are left alone", "[unix]") {
  run([] {
    const scratch_directory in;
    const endpoint where = endpoint::unix_path(in.name() + "/socket");
    {
      unix_listener dead(where);
      const fd left = dead.release();
    }
    REQUIRE(in.has("socket"));
    {
      unix_listener again(where);
      auto client = spin([&] { unix_stream::connect(where); });
      again.accept();
      client.await();
    }
    CHECK_FALSE(in.has("socket"));
    fd(::openat(in.get(), "socket", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK(error_of([&] { unix_listener over(where); }) == std::errc::address_in_use);
    CHECK(in.has("socket"));
  });
}

TEST_CASE("close takes no path away that is another file by now", "[unix]") {
  run([] {
    const scratch_directory in;
    unix_listener listening(endpoint::unix_path(in.name() + "/socket"));
    REQUIRE(::renameat(in.get(), "socket", in.get(), "moved") == 0);
    fd(::openat(in.get(), "socket", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    listening.close();
    CHECK(in.has("socket"));
    CHECK(in.has("moved"));
  });
}

TEST_CASE("a listener that is being closed takes no newer one's path away", "[unix]") {
  run([] {
    const scratch_directory in;
    const endpoint where = endpoint::unix_path(in.name() + "/socket");
    for (int round = 0; round < 20; ++round) {
      unix_listener old(where);
      std::optional<unix_listener> next;
      auto accepting = spin([&] {
        std::error_code error;
        old.accept(error);
        next.emplace(where);
      });
      until_waiting(accepting);
      old.close();
      accepting.await();
      CHECK(in.has("socket"));
      auto client = spin([&] { unix_stream::connect(where); });
      next->accept();
      client.await();
    }
    unix_listener itself(where);
    unix_listener& same = itself;
    itself = std::move(same);
    CHECK(in.has("socket"));
  });
}

TEST_CASE("a forked child leaves its parent's path alone", "[unix]") {
  const scratch_directory in;
  run([&] {
    unix_listener listening(endpoint::unix_path(in.name() + "/socket"));
    const pid_t child = ::fork();
    if (child == 0) {
      listening.close();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(in.has("socket"));
  });
  CHECK_FALSE(in.has("socket"));
}

TEST_CASE("an abstract name is in no file system, and vanishes with its socket", "[unix]") {
  run([] {
    const endpoint where = abstract_name();
    {
      unix_listener listening(where);
      auto client = spin(
          [&] { return read_text(*std::make_unique<unix_stream>(unix_stream::connect(where))); });
      unix_stream accepted = listening.accept();
      accepted.write_all("hi");
      CHECK(client.await() == "hi");
    }
    CHECK(error_of([&] { unix_stream::connect(where); }) == std::errc::connection_refused);
    std::error_code error;
    CHECK(unix_stream::connect(where, error).native_handle() == -1);
    CHECK(error == std::errc::connection_refused);
  });
}

TEST_CASE("what cannot be connected to is named", "[unix]") {
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

TEST_CASE("serve serves each connection in a fiber", "[unix]") {
  run([] {
    const endpoint where = abstract_name();
    unix_listener listening(where);
    auto server = spin(
        [&] { listening.serve([](unix_stream peer) { peer.write_all(read_text(peer) + "!"); }); });
    {
      group clients;
      for (int i = 0; i < 20; ++i) {
        clients.spin([&, i] {
          unix_stream peer = unix_stream::connect(where);
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

TEST_CASE("a descriptor is passed on, in order with the bytes around it", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& left = ends.first;
    unix_stream& right = ends.second;
    const auto pipe = make_pipe();
    left.write_all("before");
    left.send_fd(pipe.second());
    left.write_all("after");
    CHECK(read_text(right, 6) == "before");
    std::optional<fd> copy = right.receive_fd();
    REQUIRE(copy);
    CHECK((::fcntl(copy->get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(copy->get() != pipe.second());
    io::write_all(copy->get(), bytes_of("through"));
    CHECK(testing::take_all(pipe.first()) == "through");
    CHECK(read_text(right) == "after");
    left.close();
    CHECK_FALSE(right.receive_fd());
  });
}

TEST_CASE("a receive_fd waits, and an interruption loses no descriptor", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& left = ends.first;
    unix_stream& right = ends.second;
    const auto pipe = make_pipe();
    auto receiver = spin([&] { return right.receive_fd().has_value(); });
    until_waiting(receiver);
    CHECK(receiver.raise(oops()));
    CHECK_THROWS_AS(receiver.await(), oops);
    auto again = spin([&] { return right.receive_fd().has_value(); });
    until_waiting(again);
    left.send_fd(pipe.first());
    CHECK(again.await());
    CHECK(error_of([&] { left.send_fd(-1); }) == bad_descriptor);
  });
}

TEST_CASE("a descriptor that nobody asked for is closed", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& left = ends.first;
    unix_stream& right = ends.second;
    const auto pipe = make_pipe();
    const std::size_t before = testing::open_descriptors();
    const descriptor_letter letter(pipe.first());
    REQUIRE(::sendmsg(left.native_handle(), &letter.message, 0) == 1);
    CHECK(read_text(right) == "d");
    CHECK(testing::open_descriptors() == before);
    left.write_all("x");
    CHECK(error_of([&] { right.receive_fd(); }) == std::errc::no_message);
    const std::array<int, 2> two{pipe.first(), pipe.second()};
    const descriptor_letter both(two);
    REQUIRE(::sendmsg(left.native_handle(), &both.message, 0) == 1);
    CHECK(right.receive_fd());
    CHECK(testing::open_descriptors() == before);
    unix_stream none;
    CHECK(error_of([&] { none.send_fd(0); }) == bad_descriptor);
    CHECK(error_of([&] { none.receive_fd(); }) == bad_descriptor);
  });
}

TEST_CASE("a released stream stays connected, and its fibers are told", "[unix][tcp]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& left = ends.first;
    unix_stream& right = ends.second;
    auto reader = spin([&] { read_text(left); });
    until_waiting(reader);
    const fd taken = left.release();
    CHECK(error_of([&] { reader.await(); }) == bad_descriptor);
    CHECK(left.native_handle() == -1);
    right.write_all("still there");
    CHECK(testing::take_all(taken.get()) == "still there");
    CHECK_FALSE(left.release());
    unix_stream back(fd(::dup(taken.get())));
    right.write_all("again");
    CHECK(read_text(back) == "again");
  });
}

TEST_CASE("a stream that two threads have used can be released as well", "[unix]") {
  run([] {
    auto ends = stream_pair();
    unix_stream& left = ends.first;
    unix_stream& right = ends.second;
    thread other([] { sleep(); });
    for (int i = 0; i < 3; ++i) {
      auto reader = other.spin([&] { return read_text(left); });
      right.write_all("there");
      CHECK(reader.await() == "there");
      right.write_all("here");
      CHECK(read_text(left) == "here");
    }
    fd taken = left.release();
    REQUIRE(taken);
    unix_stream back(std::move(taken));
    auto reader = other.spin([&] { return read_text(back); });
    right.write_all("and back");
    CHECK(reader.await() == "and back");
    other.cancel();
  });
}

TEST_CASE("a listener that another program has opened is taken over in either mode", "[tcp]") {
  run([] {
    for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
      fd opened = testing::make_listener(mode);
      const std::uint16_t port = testing::port_of(opened.get());
      net::tcp_listener listening(std::move(opened));
      auto accepting = spin([&] { return listening.accept().native_handle() >= 0; });
      until_waiting(accepting);
      auto client = net::tcp_stream::connect(endpoint::loopback(port));
      CHECK(accepting.await());
      auto waiting = spin([&] { listening.accept(); });
      until_waiting(waiting);
      const fd left = listening.release();
      CHECK(left);
      CHECK(error_of([&] { waiting.await(); }) == bad_descriptor);
      CHECK(testing::connect_to(port));
    }
  });
}
