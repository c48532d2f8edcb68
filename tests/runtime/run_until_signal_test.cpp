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
      for (const int each : {SIGINT, SIGTERM}) ::signal(each, SIG_DFL);
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
    int how = 0;
    REQUIRE(::waitpid(child_, &how, 0) == child_);
    return WIFSIGNALED(how) ? 1000 + WTERMSIG(how) : WEXITSTATUS(how);
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

TEST_CASE("a program without signals ends as its function does", "[signal]") {
  CHECK(program([] {}).status() == 0);
  CHECK(program([] { return 3; }).status() == 3);
  CHECK(program([](std::stop_token) { return 4; }).status() == 4);
  CHECK_THROWS_AS(run_until_signal([] { throw std::runtime_error("failed"); }), std::runtime_error);
  CHECK(run_until_signal([] { CHECK_THROWS_AS(signal_set({SIGINT}), std::logic_error); }) == 0);
  CHECK_NOTHROW(signal_set({SIGINT, SIGTERM}));
}

TEST_CASE("a signal ends a program with all its fibers", "[signal]") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const program asked([] {
      for (int i = 0; i < 100; ++i) {
        spin([] {
          const last_word mine{'f'};
          sleep();
        });
      }
      snooze();
      const last_word mine{'m'};
      program::say('r');
      sleep();
    });
    REQUIRE(asked.hear() == 'r');
    asked.get(signal);
    CHECK(asked.hear() == 'm');
    for (int i = 0; i < 100; ++i) REQUIRE(asked.hear() == 'f');
    CHECK(asked.status() == 128 + signal);
  }
}

TEST_CASE("a program that drains ends by itself after the first signal", "[signal]") {
  for (const int result : {0, 7}) {
    const program asked([result](std::stop_token drain) {
      program::say('r');
      while (!drain.stop_requested()) sleep_for(1ms);
      sleep_for(2ms);
      program::say('d');
      return result;
    });
    REQUIRE(asked.hear() == 'r');
    asked.get(SIGTERM);
    CHECK(asked.hear() == 'd');
    CHECK(asked.status() == (result == 0 ? 128 + SIGTERM : result));
  }
}

TEST_CASE("a second signal cancels a program that drains, a third kills it", "[signal]") {
  const program asked([](std::stop_token drain) {
    const last_word mine{'m'};
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
  REQUIRE(asked.hear() == 'r');
  asked.get(SIGINT);
  REQUIRE(asked.hear() == 'd');
  asked.get(SIGTERM);
  REQUIRE(asked.hear() == 'c');
  asked.get(SIGTERM);
  CHECK(asked.hear() == '-');
  CHECK(asked.status() == 1000 + SIGTERM);
}

TEST_CASE("a program that waits only for a signal is not taken for a deadlock", "[signal]") {
  const program asked([] {
    program::say('r');
    suspend();
  });
  REQUIRE(asked.hear() == 'r');
  ::usleep(20'000);
  asked.get(SIGINT);
  CHECK(asked.status() == 128 + SIGINT);
}
