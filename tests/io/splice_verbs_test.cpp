// SPDX-License-Identifier: MIT
// splice, tee and waitid on raw descriptors.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <motet/motet.hpp>
#include <string>
#include <system_error>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "io/streams.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::error_of;
using testing::read_text;
using testing::scratch_name;
using testing::until_waiting;

namespace {

/// A pipe of the kernel in blocking mode, as motet did not make it.
struct raw_pipe {
  raw_pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    exit = fd(ends[0]);
    entry = fd(ends[1]);
  }
  void fill(std::string_view text) const {
    REQUIRE(::write(entry.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  fd exit;
  fd entry;
};

/// Of a child that ends as soon as there is something in the pipe.
fd pidfd_of_child(const raw_pipe& start_pipe, int code) {
  const pid_t child = ::fork();
  if (child == 0) {
    char word = 0;
    (void)!::read(start_pipe.exit.get(), &word, 1);
    ::_exit(code);
  }
  return fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

}  // namespace

TEST_CASE("io::splice() moves bytes between pipes, sockets and files", "[splice]") {
  run([] {
    const raw_pipe source;
    const raw_pipe sink;
    source.fill("pipe to pipe");
    CHECK(io::splice(source.exit.get(), sink.entry.get(), 4) == 4);
    CHECK(read_text(sink.exit.get()) == "pipe");
    auto ends = net::stream_pair();
    CHECK(io::splice(source.exit.get(), ends.first.native_handle(), 100) == 8);
    CHECK(io::splice(ends.second.native_handle(), sink.entry.get(), 100) == 8);
    CHECK(read_text(sink.exit.get()) == " to pipe");

    const scratch_name name;
    file target = file::open(name, O_RDWR | O_CREAT);
    source.fill("for a file");
    CHECK(io::splice(source.exit.get(), target.native_handle(), 100) == 10);
    target.seek(4);
    CHECK(io::splice(target.native_handle(), sink.entry.get(), 100) == 6);
    CHECK(read_text(sink.exit.get()) == "a file");
    CHECK(io::splice(target.native_handle(), sink.entry.get(), 100) == 0);
  });
}

TEST_CASE("io::splice() waits for either end, and blocks only its fiber", "[splice]") {
  run([] {
    raw_pipe source;
    const raw_pipe sink;
    auto empty = spin([&] { return io::splice(source.exit.get(), sink.entry.get(), 100); });
    until_waiting(empty);
    source.fill("now");
    CHECK(empty.await() == 3);

    ::fcntl(sink.entry.get(), F_SETPIPE_SZ, 4096);
    CHECK(read_text(sink.exit.get()) == "now");
    const std::string much(4096, 'm');
    sink.fill(much);
    source.fill("more");
    auto full = spin([&] { return io::splice(source.exit.get(), sink.entry.get(), 100); });
    until_waiting(full);
    CHECK(read_text(sink.exit.get(), 4096) == much);
    CHECK(full.await() == 4);
    const scratch_name name;
    file target = file::open(name, O_RDWR | O_CREAT);
    target.write_all("text");
    target.seek(0);
    auto from_file =
        spin([&] { return io::splice(target.native_handle(), sink.entry.get(), 100); });
    sleep_for(2ms);
    CHECK(from_file.state() == fiber_state::waiting);
    CHECK(read_text(sink.exit.get()) == "more");
    CHECK(from_file.await() == 4);
    CHECK(read_text(sink.exit.get()) == "text");

    auto last = spin([&] { return io::splice(source.exit.get(), sink.entry.get(), 100); });
    until_waiting(last);
    source.entry.close();
    CHECK(last.await() == 0);
  });
}

TEST_CASE("io::splice() that was interrupted has moved nothing", "[splice]") {
  run([] {
    const raw_pipe source;
    const raw_pipe sink;
    CHECK_FALSE(move_on_after(2ms, [&] { io::splice(source.exit.get(), sink.entry.get(), 9); }));
    source.fill("kept");
    auto splicer = spin([&] {
      current().raise(testing::oops());
      std::error_code error;
      CHECK(io::splice(source.exit.get(), sink.entry.get(), 9, 0, error) == 0);
      CHECK(error == std::errc::operation_canceled);
      checkpoint();
    });
    CHECK_THROWS_AS(splicer.await(), testing::oops);
    CHECK(read_text(source.exit.get()) == "kept");
  });
}

TEST_CASE("io::tee() leaves the bytes where they are", "[splice]") {
  run([] {
    const raw_pipe source;
    const raw_pipe sink;
    auto waiter = spin([&] { return io::tee(source.exit.get(), sink.entry.get(), 100); });
    until_waiting(waiter);
    source.fill("twice");
    CHECK(waiter.await() == 5);
    CHECK(read_text(sink.exit.get()) == "twice");
    CHECK(read_text(source.exit.get()) == "twice");
    CHECK_FALSE(move_on_after(2ms, [&] { io::tee(source.exit.get(), sink.entry.get(), 9); }));
  });
}

TEST_CASE("io::splice() and tee() throw for what cannot be spliced", "[splice]") {
  run([] {
    const raw_pipe source;
    raw_pipe sink;
    std::array<int, 2> blocking{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, blocking.data()) == 0);
    const fd client(blocking[0]);
    const fd server(blocking[1]);
    source.fill("text");
    CHECK(error_of([&] { io::splice(source.exit.get(), client.get(), 9); }) ==
          std::errc::invalid_argument);
    CHECK(error_of([&] { io::splice(client.get(), sink.entry.get(), 9); }) ==
          std::errc::invalid_argument);
    CHECK(error_of([&] { io::splice(-1, sink.entry.get(), 9); }) == std::errc::bad_file_descriptor);
    CHECK(error_of([&] { io::tee(source.exit.get(), -1, 9); }) == std::errc::bad_file_descriptor);
    const fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    CHECK(error_of([&] { io::splice(null.get(), null.get(), 9); }) == std::errc::invalid_argument);
    sink.exit.close();
    CHECK(error_of([&] { io::splice(source.exit.get(), sink.entry.get(), 9); }) ==
          std::errc::broken_pipe);
    CHECK(error_of([&] { io::tee(source.exit.get(), sink.entry.get(), 9); }) ==
          std::errc::broken_pipe);
    CHECK(read_text(source.exit.get()) == "text");
  });
}

TEST_CASE("io::waitid() waits for a process by its descriptor", "[process]") {
  run([] {
    const raw_pipe start_pipe;
    const fd child = pidfd_of_child(start_pipe, 7);
    CHECK_FALSE(move_on_after(1us, [&] { io::waitid(child.get()); }));
    auto writer = spin([&] {
      sleep_for(2ms);
      start_pipe.fill("end");
    });
    CHECK(io::waitid(child.get(), WEXITED | WNOWAIT).si_status == 7);
    writer.await();
    const siginfo_t info = io::waitid(child.get());
    CHECK(info.si_code == CLD_EXITED);
    CHECK(info.si_status == 7);
    CHECK(error_of([&] { io::waitid(child.get()); }) == std::errc::no_child_process);
    CHECK(error_of([&] { io::waitid(-1); }) == std::errc::invalid_argument);
    std::error_code error;
    io::waitid(child.get(), 0, error);
    CHECK(error == std::errc::invalid_argument);
  });
}

TEST_CASE("io::splice() and tee() end when a fiber closes either end, and move nothing elsewhere",
          "[splice]") {
  using moving_call = std::size_t (*)(int, int, std::error_code&) noexcept;
  constexpr moving_call calls[] = {[](int source, int sink, std::error_code& error) noexcept {
                                     return io::splice(source, sink, 100, 0, error);
                                   },
                                   [](int source, int sink, std::error_code& error) noexcept {
                                     return io::tee(source, sink, 100, error);
                                   }};
  for (const moving_call call : calls) {
    for (const bool closes_source : {false, true}) {
      run([&] {
        raw_pipe source;
        raw_pipe sink;
        if (closes_source) {  // it waits for room then
          source.fill("secret");
          REQUIRE(::fcntl(sink.entry.get(), F_SETPIPE_SZ, 4'096) == 4'096);
          sink.fill(std::string(4'096, 'a'));
        }
        std::error_code error;
        auto mover = spin([&] { return call(source.exit.get(), sink.entry.get(), error); });
        until_waiting(mover);
        fd& end = closes_source ? source.exit : sink.entry;
        const int number = end.get();
        end.close();
        const raw_pipe stranger;
        const int target = (closes_source ? stranger.exit : stranger.entry).get();
        const fd duplicate(target == number ? -1 : ::dup2(target, number));
        if (!closes_source) source.fill("secret");
        CHECK(mover.await() == 0);
        CHECK(error == std::errc::bad_file_descriptor);
        REQUIRE(::fcntl(stranger.exit.get(), F_SETFL, O_NONBLOCK) == 0);
        char byte = 0;
        CHECK(::read(stranger.exit.get(), &byte, 1) == -1);
      });
    }
  }
}

TEST_CASE("io::splice() to a file does not follow the number that another fiber closes",
          "[splice]") {
  run([] {
    const raw_pipe source;
    const scratch_name name;
    const scratch_name second_name;
    const auto open = [](const scratch_name& place) {
      return fd(io::openat(AT_FDCWD, std::string(place).c_str(), O_RDWR | O_CREAT, 0600));
    };
    fd file = open(name);
    const int number = file.get();
    auto mover = spin([&] { error_of([&] { io::splice(source.exit.get(), number, 6); }); });
    until_waiting(mover);
    file.close();
    const fd stranger = open(second_name);
    const fd duplicate(stranger.get() == number ? -1 : ::dup2(stranger.get(), number));
    source.fill("secret");
    mover.await();
    char byte = 0;
    CHECK(::pread(stranger.get(), &byte, 1, 0) == 0);
  });
}

TEST_CASE("io::splice() to a file leaves the program's locks on it alone", "[splice]") {
  run([] {
    const raw_pipe source;
    const scratch_name name;
    const fd file(io::openat(AT_FDCWD, std::string(name).c_str(), O_RDWR | O_CREAT, 0600));
    struct flock whole{};
    whole.l_type = F_WRLCK;
    REQUIRE(::fcntl(file.get(), F_SETLK, &whole) == 0);
    source.fill("text");
    CHECK(io::splice(source.exit.get(), file.get(), 4) == 4);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::fcntl(file.get(), F_SETLK, &whole) == 0 ? 1 : 0);
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  });
}
