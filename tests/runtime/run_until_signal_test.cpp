// SPDX-License-Identifier: MIT
// Programs that end by a signal: each is a forked child, which is asked to end and looked at.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <motet/motet.hpp>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// A child whose main() is run_until_signal(f). It says by ready() that it can be asked to end.
class program {
 public:
  template <typename F>
  explicit program(F f) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    words_ = ends[0];
    child_ = ::fork();
    if (child_ == 0) {
      for (const int signal_number : {SIGINT, SIGTERM}) ::signal(signal_number, SIG_DFL);
      said_to = ends[1];
      ::_exit(run_until_signal(f));
    }
    ::close(ends[1]);
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program() { ::close(words_); }

  static void say(char word) { (void)!::write(said_to, &word, 1); }

  char hear() const {
    char word = 0;
    return ::read(words_, &word, 1) == 1 ? word : '-';
  }
  void get(int signal) const { REQUIRE(::kill(child_, signal) == 0); }

  /// As a shell shows it.
  int status() const {
    int status = 0;
    REQUIRE(::waitpid(child_, &status, 0) == child_);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  static inline int said_to = -1;
  int words_ = -1;
  pid_t child_ = -1;
};

struct last_word {
  char word;
  ~last_word() { program::say(word); }
};

}  // namespace

TEST_CASE("run_until_signal() without a signal ends when its function does", "[signal]") {
  CHECK(program([] {}).status() == 0);
  CHECK(program([] { return 3; }).status() == 3);
  CHECK(program([](std::stop_token) { return 4; }).status() == 4);
  CHECK_THROWS_AS(run_until_signal([] { throw std::runtime_error("failed"); }), std::runtime_error);
  CHECK(run_until_signal([] { CHECK_THROWS_AS(signal_set({SIGINT}), std::logic_error); }) == 0);
  CHECK_NOTHROW(signal_set({SIGINT, SIGTERM}));
}

TEST_CASE("run_until_signal() ends all fibers when a signal arrives", "[signal]") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const program child([] {
      for (int i = 0; i < 100; ++i) {
        spin([] {
          const last_word mark{'f'};
          sleep();
        });
      }
      snooze();
      const last_word mark{'m'};
      program::say('r');
      sleep();
    });
    REQUIRE(child.hear() == 'r');
    child.get(signal);
    CHECK(child.hear() == 'm');
    for (int i = 0; i < 100; ++i) REQUIRE(child.hear() == 'f');
    CHECK(child.status() == 128 + signal);
  }
}

TEST_CASE("run_until_signal() with drain lets the program end by itself after the first signal",
          "[signal]") {
  for (const int result : {0, 7}) {
    const program child([result](std::stop_token drain) {
      program::say('r');
      while (!drain.stop_requested()) sleep_for(1ms);
      sleep_for(2ms);
      program::say('d');
      return result;
    });
    REQUIRE(child.hear() == 'r');
    child.get(SIGTERM);
    CHECK(child.hear() == 'd');
    CHECK(child.status() == (result == 0 ? 128 + SIGTERM : result));
  }
}

TEST_CASE("run_until_signal() with drain is cancelled by a second signal, killed by a third",
          "[signal]") {
  const program child([](std::stop_token drain) {
    const last_word mark{'m'};
    program::say('r');
    while (!drain.stop_requested()) sleep_for(1ms);
    program::say('d');
    try {
      sleep();
    } catch (const cancelled&) {
      motet::pipe silent = motet::pipe::open();
      program::say('c');
      shield([&] { io::wait_fd(silent.native_handle(SHUT_RD), POLLIN); });
    }
  });
  REQUIRE(child.hear() == 'r');
  child.get(SIGINT);
  REQUIRE(child.hear() == 'd');
  child.get(SIGTERM);
  REQUIRE(child.hear() == 'c');
  child.get(SIGTERM);
  CHECK(child.hear() == '-');
  CHECK(child.status() == 1000 + SIGTERM);
}

TEST_CASE("run_until_signal() does not take a program that waits for a signal for a deadlock",
          "[signal]") {
  const program child([] {
    program::say('r');
    suspend();
  });
  REQUIRE(child.hear() == 'r');
  ::usleep(20'000);
  child.get(SIGINT);
  CHECK(child.status() == 128 + SIGINT);
}
