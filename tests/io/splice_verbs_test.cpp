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
    std::array<int, 2> made{};
    REQUIRE(::pipe2(made.data(), O_CLOEXEC) == 0);
    exit = fd(made[0]);
    entry = fd(made[1]);
  }
  void fill(std::string_view text) const {
    REQUIRE(::write(entry.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  fd exit;
  fd entry;
};

/// Of a child that ends as soon as there is something in the pipe.
fd pidfd_of_child(const raw_pipe& told, int code) {
  const pid_t child = ::fork();
  if (child == 0) {
    char word = 0;
    (void)!::read(told.exit.get(), &word, 1);
    ::_exit(code);
  }
  return fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

}  // namespace

TEST_CASE("bytes are spliced between pipes, sockets and files", "[splice]") {
  run([] {
    const raw_pipe in;
    const raw_pipe out;
    in.fill("pipe to pipe");
    CHECK(io::splice(in.exit.get(), out.entry.get(), 4) == 4);
    CHECK(read_text(out.exit.get()) == "pipe");
    auto ends = net::stream_pair();
    CHECK(io::splice(in.exit.get(), ends.first.native_handle(), 100) == 8);
    CHECK(io::splice(ends.second.native_handle(), out.entry.get(), 100) == 8);
    CHECK(read_text(out.exit.get()) == " to pipe");

    const scratch_name name;
    file kept = file::open(name, O_RDWR | O_CREAT);
    in.fill("for a file");
    CHECK(io::splice(in.exit.get(), kept.native_handle(), 100) == 10);
    kept.seek(4);
    CHECK(io::splice(kept.native_handle(), out.entry.get(), 100) == 6);
    CHECK(read_text(out.exit.get()) == "a file");
    CHECK(io::splice(kept.native_handle(), out.entry.get(), 100) == 0);
  });
}

TEST_CASE("a splice waits for either end, and only its fiber does", "[splice]") {
  run([] {
    raw_pipe in;
    const raw_pipe out;
    auto empty = spin([&] { return io::splice(in.exit.get(), out.entry.get(), 100); });
    until_waiting(empty);
    in.fill("now");
    CHECK(empty.await() == 3);

    ::fcntl(out.entry.get(), F_SETPIPE_SZ, 4096);
    CHECK(read_text(out.exit.get()) == "now");
    const std::string much(4096, 'm');
    out.fill(much);
    in.fill("more");
    auto full = spin([&] { return io::splice(in.exit.get(), out.entry.get(), 100); });
    until_waiting(full);
    CHECK(read_text(out.exit.get(), 4096) == much);
    CHECK(full.await() == 4);
    const scratch_name name;
    file kept = file::open(name, O_RDWR | O_CREAT);
    kept.write_all("text");
    kept.seek(0);
    auto from_file = spin([&] { return io::splice(kept.native_handle(), out.entry.get(), 100); });
    sleep_for(2ms);
    CHECK(from_file.state() == fiber_state::waiting);
    CHECK(read_text(out.exit.get()) == "more");
    CHECK(from_file.await() == 4);
    CHECK(read_text(out.exit.get()) == "text");

    auto ending = spin([&] { return io::splice(in.exit.get(), out.entry.get(), 100); });
    until_waiting(ending);
    in.entry.close();
    CHECK(ending.await() == 0);
  });
}

TEST_CASE("an interrupted splice has moved nothing", "[splice]") {
  run([] {
    const raw_pipe in;
    const raw_pipe out;
    CHECK_FALSE(move_on_after(2ms, [&] { io::splice(in.exit.get(), out.entry.get(), 9); }));
    in.fill("kept");
    auto pending = spin([&] {
      current().raise(testing::oops());
      std::error_code error;
      CHECK(io::splice(in.exit.get(), out.entry.get(), 9, 0, error) == 0);
      CHECK(error == std::errc::operation_canceled);
      checkpoint();
    });
    CHECK_THROWS_AS(pending.await(), testing::oops);
    CHECK(read_text(in.exit.get()) == "kept");
  });
}

TEST_CASE("tee leaves the bytes where they are", "[splice]") {
  run([] {
    const raw_pipe in;
    const raw_pipe out;
    auto waiting = spin([&] { return io::tee(in.exit.get(), out.entry.get(), 100); });
    until_waiting(waiting);
    in.fill("twice");
    CHECK(waiting.await() == 5);
    CHECK(read_text(out.exit.get()) == "twice");
    CHECK(read_text(in.exit.get()) == "twice");
    CHECK_FALSE(move_on_after(2ms, [&] { io::tee(in.exit.get(), out.entry.get(), 9); }));
  });
}

TEST_CASE("what cannot be spliced is refused", "[splice]") {
  run([] {
    const raw_pipe in;
    raw_pipe out;
    std::array<int, 2> blocking{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, blocking.data()) == 0);
    const fd near(blocking[0]);
    const fd far(blocking[1]);
    in.fill("text");
    CHECK(error_of([&] { io::splice(in.exit.get(), near.get(), 9); }) ==
          std::errc::invalid_argument);
    CHECK(error_of([&] { io::splice(near.get(), out.entry.get(), 9); }) ==
          std::errc::invalid_argument);
    CHECK(error_of([&] { io::splice(-1, out.entry.get(), 9); }) == std::errc::bad_file_descriptor);
    CHECK(error_of([&] { io::tee(in.exit.get(), -1, 9); }) == std::errc::bad_file_descriptor);
    const fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    CHECK(error_of([&] { io::splice(null.get(), null.get(), 9); }) == std::errc::invalid_argument);
    out.exit.close();
    CHECK(error_of([&] { io::splice(in.exit.get(), out.entry.get(), 9); }) ==
          std::errc::broken_pipe);
    CHECK(error_of([&] { io::tee(in.exit.get(), out.entry.get(), 9); }) == std::errc::broken_pipe);
    CHECK(read_text(in.exit.get()) == "text");
  });
}

TEST_CASE("a fiber waits for a process by its descriptor", "[process]") {
  run([] {
    const raw_pipe told;
    const fd child = pidfd_of_child(told, 7);
    CHECK_FALSE(move_on_after(1us, [&] { io::waitid(child.get()); }));
    auto other = spin([&] {
      sleep_for(2ms);
      told.fill("end");
    });
    CHECK(io::waitid(child.get(), WEXITED | WNOWAIT).si_status == 7);
    other.await();
    const siginfo_t ended = io::waitid(child.get());
    CHECK(ended.si_code == CLD_EXITED);
    CHECK(ended.si_status == 7);
    CHECK(error_of([&] { io::waitid(child.get()); }) == std::errc::no_child_process);
    CHECK(error_of([&] { io::waitid(-1); }) == std::errc::invalid_argument);
    std::error_code error;
    io::waitid(child.get(), 0, error);
    CHECK(error == std::errc::invalid_argument);
  });
}

TEST_CASE("a fiber that closes either end ends the call, and nothing goes elsewhere", "[splice]") {
  using moving_call = std::size_t (*)(int, int, std::error_code&) noexcept;
  constexpr moving_call calls[] = {[](int from, int to, std::error_code& error) noexcept {
                                     return io::splice(from, to, 100, 0, error);
                                   },
                                   [](int from, int to, std::error_code& error) noexcept {
                                     return io::tee(from, to, 100, error);
                                   }};
  for (const moving_call call : calls) {
    for (const bool closes_source : {false, true}) {
      run([&] {
        raw_pipe in;
        raw_pipe out;
        if (closes_source) {  // it waits for room then
          in.fill("secret");
          REQUIRE(::fcntl(out.entry.get(), F_SETPIPE_SZ, 4'096) == 4'096);
          out.fill(std::string(4'096, 'a'));
        }
        std::error_code error;
        auto moving = spin([&] { return call(in.exit.get(), out.entry.get(), error); });
        until_waiting(moving);
        fd& closed = closes_source ? in.exit : out.entry;
        const int number = closed.get();
        closed.close();
        const raw_pipe stranger;
        const int target = (closes_source ? stranger.exit : stranger.entry).get();
        const fd again(target == number ? -1 : ::dup2(target, number));
        if (!closes_source) in.fill("secret");
        CHECK(moving.await() == 0);
        CHECK(error == std::errc::bad_file_descriptor);
        REQUIRE(::fcntl(stranger.exit.get(), F_SETFL, O_NONBLOCK) == 0);
        char byte = 0;
        CHECK(::read(stranger.exit.get(), &byte, 1) == -1);
      });
    }
  }
}

TEST_CASE("what is moved to a file does not follow the number that another fiber closes",
          "[splice]") {
  run([] {
    const raw_pipe in;
    const scratch_name name;
    const scratch_name other;
    const auto open = [](const scratch_name& what) {
      return fd(io::openat(AT_FDCWD, std::string(what).c_str(), O_RDWR | O_CREAT, 0600));
    };
    fd file = open(name);
    const int number = file.get();
    auto moving = spin([&] { error_of([&] { io::splice(in.exit.get(), number, 6); }); });
    until_waiting(moving);
    file.close();
    const fd stranger = open(other);
    const fd again(stranger.get() == number ? -1 : ::dup2(stranger.get(), number));
    in.fill("secret");
    moving.await();
    char byte = 0;
    CHECK(::pread(stranger.get(), &byte, 1, 0) == 0);
  });
}

TEST_CASE("a splice to a file leaves the program's locks on it alone", "[splice]") {
  run([] {
    const raw_pipe in;
    const scratch_name name;
    const fd file(io::openat(AT_FDCWD, std::string(name).c_str(), O_RDWR | O_CREAT, 0600));
    struct flock whole{};
    whole.l_type = F_WRLCK;
    REQUIRE(::fcntl(file.get(), F_SETLK, &whole) == 0);
    in.fill("text");
    CHECK(io::splice(in.exit.get(), file.get(), 4) == 4);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::fcntl(file.get(), F_SETLK, &whole) == 0 ? 1 : 0);
    int how = -1;
    REQUIRE(::waitpid(child, &how, 0) == child);
    CHECK(how == 0);
  });
}
