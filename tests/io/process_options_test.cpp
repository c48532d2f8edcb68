// SPDX-License-Identifier: MIT
// What a program is given beside its arguments: descriptors in blocking mode, a search path, the
// parent's end; and what keeps it from being started.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <motet/motet.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::error_of;

namespace {

process_options shell(const std::string& script) {
  return {.program = "sh", .args = {"-c", script}};
}

bool is_nonblocking(int descriptor) {
  return (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0;
}

/// Returns: what comes until the end.
template <typename Stream>
std::string all_of(Stream& from) {
  std::string all;
  std::array<std::byte, 65'536> room;
  while (const std::size_t size = from.read(room))
    all += testing::text_of(std::span(room).first(size));
  return all;
}

/// ThreadSanitizer ends a forked child that does, if its parent had threads.
constexpr bool child_may_begin_threads = !testing::under_tsan;

}  // namespace

TEST_CASE("a socket that a program gets as a standard stream is in blocking mode", "[process]") {
  if (testing::on_sim()) return;  // whose time does not wait for other programs
  run([] {
    auto [here, there] = net::stream_pair();
    process_options what{.program = "cat"};
    what.in = what.out = standard_stream(there.native_handle());
    process cat = process::start(what);
    CHECK_FALSE(is_nonblocking(there.native_handle()));
    there.close();
    const std::string text(4'000'000, 'x');
    group writing;
    writing.spin([&, &to = here] {
      to.write_all(text);
      to.shutdown(SHUT_WR);
    });
    CHECK(all_of(here).size() == text.size());
    CHECK(cat.wait());
    writing.await_all();
  });
}

TEST_CASE("a program gets further descriptors at the numbers asked for, and no others",
          "[process]") {
  run([] {
    auto pipe = testing::make_pipe(O_NONBLOCK);
    const fd other(::open("/dev/null", O_RDONLY));
    process_options what = shell("echo passed >&5; ls /proc/self/fd | tr '\\n' ' '");
    what.descriptors = {{pipe.second(), 5}, {other.get(), 7}};
    const command_result done = run_command(what);
    CHECK(done.status);
    CHECK(done.out == "0 1 2 3 5 7 ");  // 3: ls reads the directory
    std::array<std::byte, 16> room;
    CHECK(testing::text_of(std::span(room).first(io::read(pipe.first(), room))) == "passed\n");
    CHECK_FALSE(is_nonblocking(pipe.second()));
    for (const int number : {2, 1024}) {
      what.descriptors = {{other.get(), number}};
      CHECK_THROWS_AS(process::start(what), std::invalid_argument);
    }
    what.descriptors = {{other.get(), 4}, {other.get(), 4}};
    CHECK_THROWS_AS(process::start(what), std::invalid_argument);
    what.descriptors = {{987'654, 4}};
    CHECK(error_of([&] { process::start(what); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a socket that listens keeps its mode when a program gets it", "[process]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const bool before = is_nonblocking(listener.native_handle());
    process_options what = shell("exit 0");
    what.descriptors = {{listener.native_handle(), 3}};
    CHECK(process::start(what).wait());
    CHECK(is_nonblocking(listener.native_handle()) == before);
  });
}

TEST_CASE("what a program writes to stderr can go where its stdout goes", "[process]") {
  run([] {
    process_options what = shell("echo one; echo two >&2; echo three");
    what.out = standard_stream::pipe;
    what.err = standard_stream::standard_output;
    process both = process::start(what);
    CHECK(all_of(both.out()) == "one\ntwo\nthree\n");
    CHECK(both.wait());
    what.out = standard_stream::standard_output;
    CHECK_THROWS_AS(process::start(what), std::invalid_argument);
  });
}

TEST_CASE("a program is looked for in the PATH of the environment that it gets", "[process]") {
  run([] {
    const testing::scratch_directory scratch;
    const std::string& folder = scratch.name();
    const std::string path = folder + "/only-there";
    std::ofstream(path) << "#!/bin/sh\necho found\n";
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    process_options what{.program = "only-there"};
    CHECK(error_of([&] { process::start(what); }) == std::errc::no_such_file_or_directory);
    what.environment = {"PATH=/nowhere:" + folder};
    CHECK(run_command(what).out == "found\n");
    what.environment = {"HOME=/"};  // without PATH: where the system's programs are
    what.program = "true";
    CHECK(run_command(what).status);
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    what.program = "only-there";
    what.environment = {"PATH=" + folder};
    CHECK(error_of([&] { process::start(what); }) == std::errc::permission_denied);
  });
}

TEST_CASE("a program that is to die with its parent does so, however that one ends", "[process]") {
  if (testing::on_sim() || !child_may_begin_threads) return;
  auto told = testing::make_pipe();
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    run([&] {
      process_options what = shell("echo $$ >&5; exec sleep 1000");
      what.descriptors = {{told.second(), 5}};
      what.die_with_parent = true;
      const process bound = process::start(what);
      sleep_for(1'000s);
    });
    ::_exit(0);
  }
  told.close_second();
  char text[32] = {};
  REQUIRE(::read(told.first(), text, sizeof text - 1) > 0);
  const pid_t child = std::atoi(text);
  REQUIRE(child > 0);
  std::this_thread::sleep_for(200ms);  // longer than threads of the parent may be idle
  CHECK(::kill(child, 0) == 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  // Its end is told by the pipe, of which it has the last writing end.
  CHECK(::read(told.first(), text, sizeof text) == 0);
}

TEST_CASE("a program that dies with its parent is started as any other", "[process]") {
  run([] {
    process_options what = shell("pwd; echo $A; cat");
    what.die_with_parent = true;
    what.directory = "/usr";
    what.environment = {"A=b", "PATH=/usr/bin:/bin"};
    CHECK(run_command(what, "text").out == "/usr\nb\ntext");
    what.directory = "/no/such/place";
    CHECK(error_of([&] { process::start(what); }) == std::errc::no_such_file_or_directory);
    what.directory = {};
    what.program = "/etc/passwd";
    CHECK(error_of([&] { process::start(what); }) == std::errc::permission_denied);
    CHECK((::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD));
  });
}

TEST_CASE("under a time limit that has passed no program is started", "[process]") {
  if (testing::on_sim()) return;
  run([] {
    const testing::scratch_directory scratch;
    const std::string mark = scratch.name() + "/mark";
    const bool left = move_on_after(1ms, [&] {
      const auto end = std::chrono::steady_clock::now() + 5ms;
      while (std::chrono::steady_clock::now() < end) {
      }
      process_options what = shell("touch " + mark);
      process::start(what).wait();
    });
    CHECK_FALSE(left);
    std::this_thread::sleep_for(20ms);
    CHECK_FALSE(scratch.has("mark"));
  });
}
