// SPDX-License-Identifier: MIT
// What libraries that were written for threads rely on, and fibers of one thread must not take from
// each other: variables of the thread, jumps, destructors and handlers at the end.
#include <netdb.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <motet/motet.hpp>
#include <motet/posix.hpp>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "posix/pair.hpp"

// What setjmp.h has longjmp() call in programs that are compiled with _FORTIFY_SOURCE.
extern "C" [[noreturn]] void __longjmp_chk(jmp_buf, int);  // NOLINT(bugprone-reserved-identifier)

namespace {

using namespace motet;
using namespace std::chrono_literals;

void nap() {
  ::usleep(2'000);
}

/// Runs `first` and `second`, in whose waits the other one runs.
template <typename First, typename Second>
void run_both(First first, Second second) {
  run([&] {
    group fibers;
    fibers.spin([&] { first(); });
    fibers.spin([&] { second(); });
    fibers.await_all();
  });
}

}  // namespace

TEST_CASE("posix: a fiber finds its h_errno again after a wait") {
  const auto keep = [](int mine) {
    h_errno = mine;
    for (int i = 0; i < 3; ++i) {
      nap();
      CHECK(h_errno == mine);
    }
  };
  run_both([&] { keep(NO_DATA); }, [&] { keep(TRY_AGAIN); });
}

TEST_CASE("posix: longjmp() after a wait returns to its own fiber") {
  const auto jump = [](int value) {
    jmp_buf place;
    volatile int jumps = 0;
    const int returned = setjmp(place);
    if (returned != 0) CHECK(returned == value);
    if (jumps < 3) {
      jumps = jumps + 1;
      nap();
      if (jumps == 2) ::longjmp(place, value);
      __longjmp_chk(place, value);
    }
    CHECK(jumps == 3);
  };
  run_both([&] { jump(1); }, [&] { jump(2); });
}

TEST_CASE("posix: a destructor that waits while an exception unwinds lets other fibers run") {
  const testing::pair ends("stream");
  struct goodbye {
    int fd;
    ~goodbye() {
      char byte = 0;
      CHECK(::read(fd, &byte, 1) == 1);
    }
  };
  run_both(
      [&] {
        try {
          const goodbye waits{ends.reader.get()};
          throw std::runtime_error("lost");
        } catch (const std::runtime_error& error) {
          CHECK(std::string(error.what()) == "lost");
        }
      },
      [&] {
        nap();
        CHECK(::write(ends.writer.get(), "x", 1) == 1);
      });
}

TEST_CASE("posix: calls in handlers of atexit(3) are the C library's") {
  const pid_t child = ::fork();
  if (child == 0) {
    run([] { nap(); });
    std::atexit([] {
      nap();
      std::array<int, 2> ends{};
      char byte = 0;
      if (::pipe(ends.data()) != 0 || ::write(ends[1], "x", 1) != 1 ||
          ::read(ends[0], &byte, 1) != 1)
        ::_exit(1);
      ::_exit(7);
    });
    std::exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
}
