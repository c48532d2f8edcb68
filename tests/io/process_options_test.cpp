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
std::string all_of(Stream& source) {
  std::string text;
  std::array<std::byte, 65'536> room;
  while (const std::size_t size = source.read(room))
    text += testing::text_of(std::span(room).first(size));
  return text;
}

/// ThreadSanitizer ends a forked child that does, if its parent had threads.
constexpr bool child_may_begin_threads = !testing::under_tsan;

}  // namespace

TEST_CASE("process_options::in and out put a socket into blocking mode", "[process]") {
  if (testing::on_sim()) return;  // whose time does not wait for other programs
  run([] {
    auto [parent_end, child_end] = net::stream_pair();
    process_options options{.program = "cat"};
    options.in = options.out = standard_stream(child_end.native_handle());
    process cat = process::start(options);
    CHECK_FALSE(is_nonblocking(child_end.native_handle()));
    child_end.close();
    const std::string text(4'000'000, 'x');
    group writers;
    writers.spin([&, &target = parent_end] {
      target.write_all(text);
      target.shutdown(SHUT_WR);
    });
    CHECK(all_of(parent_end).size() == text.size());
    CHECK(cat.wait());
    writers.await_all();
  });
}

TEST_CASE("process_options::descriptors passes descriptors at their numbers, and no others",
          "[process]") {
  run([] {
    auto pipe = testing::make_pipe(O_NONBLOCK);
    const fd null(::open("/dev/null", O_RDONLY));
    process_options options = shell("echo passed >&5; ls /proc/self/fd | tr '\\n' ' '");
    options.descriptors = {{pipe.second(), 5}, {null.get(), 7}};
    const command_result result = run_command(options);
    CHECK(result.status);
    CHECK(result.out == "0 1 2 3 5 7 ");  // 3: ls reads the directory
    std::array<std::byte, 16> room;
    CHECK(testing::text_of(std::span(room).first(io::read(pipe.first(), room))) == "passed\n");
    CHECK_FALSE(is_nonblocking(pipe.second()));
    for (const int number : {2, 1024}) {
      options.descriptors = {{null.get(), number}};
      CHECK_THROWS_AS(process::start(options), std::invalid_argument);
    }
    options.descriptors = {{null.get(), 4}, {null.get(), 4}};
    CHECK_THROWS_AS(process::start(options), std::invalid_argument);
    options.descriptors = {{987'654, 4}};
    CHECK(error_of([&] { process::start(options); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("process_options::descriptors leaves the mode of a listening socket alone", "[process]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const bool was_nonblocking = is_nonblocking(listener.native_handle());
    process_options options = shell("exit 0");
    options.descriptors = {{listener.native_handle(), 3}};
    CHECK(process::start(options).wait());
    CHECK(is_nonblocking(listener.native_handle()) == was_nonblocking);
  });
}

TEST_CASE("standard_stream::standard_output sends stderr where stdout goes", "[process]") {
  run([] {
    process_options options = shell("echo one; echo two >&2; echo three");
    options.out = standard_stream::pipe;
    options.err = standard_stream::standard_output;
    process program = process::start(options);
    CHECK(all_of(program.out()) == "one\ntwo\nthree\n");
    CHECK(program.wait());
    options.out = standard_stream::standard_output;
    CHECK_THROWS_AS(process::start(options), std::invalid_argument);
  });
}

TEST_CASE("process_options::environment has the PATH in which the program is searched",
          "[process]") {
  run([] {
    const testing::scratch_directory scratch;
    const std::string& folder = scratch.name();
    const std::string path = folder + "/only-there";
    std::ofstream(path) << "#!/bin/sh\necho found\n";
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    process_options options{.program = "only-there"};
    CHECK(error_of([&] { process::start(options); }) == std::errc::no_such_file_or_directory);
    options.environment = {"PATH=/nowhere:" + folder};
    CHECK(run_command(options).out == "found\n");
    options.environment = {"HOME=/"};  // without PATH: where the system's programs are
    options.program = "true";
    CHECK(run_command(options).status);
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    options.program = "only-there";
    options.environment = {"PATH=" + folder};
    CHECK(error_of([&] { process::start(options); }) == std::errc::permission_denied);
  });
}

TEST_CASE("process_options::die_with_parent ends the program however its parent ends",
          "[process]") {
  if (testing::on_sim() || !child_may_begin_threads) return;
  auto pipe = testing::make_pipe();
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    run([&] {
      process_options options = shell("echo $$ >&5; exec sleep 1000");
      options.descriptors = {{pipe.second(), 5}};
      options.die_with_parent = true;
      const process program = process::start(options);
      sleep_for(1'000s);
    });
    ::_exit(0);
  }
  pipe.close_second();
  char text[32] = {};
  REQUIRE(::read(pipe.first(), text, sizeof text - 1) > 0);
  const pid_t child = std::atoi(text);
  REQUIRE(child > 0);
  std::this_thread::sleep_for(200ms);  // longer than threads of the parent may be idle
  CHECK(::kill(child, 0) == 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  // Its end is told by the pipe, of which it has the last writing end.
  CHECK(::read(pipe.first(), text, sizeof text) == 0);
}

TEST_CASE("process_options::die_with_parent starts a program as any other", "[process]") {
  run([] {
    process_options options = shell("pwd; echo $A; cat");
    options.die_with_parent = true;
    options.directory = "/usr";
    options.environment = {"A=b", "PATH=/usr/bin:/bin"};
    CHECK(run_command(options, "text").out == "/usr\nb\ntext");
    options.directory = "/no/such/place";
    CHECK(error_of([&] { process::start(options); }) == std::errc::no_such_file_or_directory);
    options.directory = {};
    options.program = "/etc/passwd";
    CHECK(error_of([&] { process::start(options); }) == std::errc::permission_denied);
    CHECK((::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD));
  });
}

TEST_CASE("process::start() starts no program after the time limit has passed", "[process]") {
  if (testing::on_sim()) return;
  run([] {
    const testing::scratch_directory scratch;
    const std::string mark = scratch.name() + "/mark";
    const bool finished = move_on_after(1ms, [&] {
      const auto end = std::chrono::steady_clock::now() + 5ms;
      while (std::chrono::steady_clock::now() < end) {
      }
      process_options options = shell("touch " + mark);
      process::start(options).wait();
    });
    CHECK_FALSE(finished);
    std::this_thread::sleep_for(20ms);
    CHECK_FALSE(scratch.has("mark"));
  });
}
