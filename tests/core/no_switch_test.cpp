// SPDX-License-Identifier: MIT
// Code in which a fiber must not leave its thread to others: what passes, and what ends the
// process.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// Calls `program` in the main fiber of another process.
/// Returns: what that wrote to standard error until it was ended by SIGABRT.
template <typename F>
std::string last_words_of(F program) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::signal(SIGABRT, SIG_DFL);
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    run([&] { program(); });
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char room[512];
  for (ssize_t got; (got = ::read(ends[0], room, sizeof room)) > 0;) {
    said.append(room, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int how = 0;
  REQUIRE(::waitpid(child, &how, 0) == child);
  INFO(said);
  CHECK((WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT));
  return said;
}

bool tells(const std::string& said, std::string_view of) {
  return said.find("motet: fiber ") != said.npos && said.find(of) != said.npos &&
         said.find("no_switch_test.cpp:") != said.npos &&
         said.find("std::recursive_mutex") != said.npos;
}

}  // namespace

TEST_CASE("a fiber that would wait under a guard ends the process", "[guard]") {
  CHECK(tells(last_words_of([] {
                const no_switch_guard quiet;
                sleep_for(1ms);
              }),
              "waits: sleep, within the no_switch_guard made at "));
  CHECK(tells(last_words_of([] {
                spin({.name = "holder"}, [] {
                  local::mutex lock;
                  lock.lock();
                  auto other = spin([&] { lock.lock(); });
                  const no_switch_guard quiet;
                  other.await();
                }).await();
              }),
              "fiber holder waits: "));
}

TEST_CASE("a fiber that would give way under a guard ends the process", "[guard]") {
  CHECK(tells(last_words_of([] {
                const no_switch_guard outer;
                const no_switch_guard inner;
                snooze();
              }),
              "gives way, within the no_switch_guard"));
  CHECK(tells(last_words_of([] {
                const no_switch_guard outer;
                {
                  const no_switch_guard inner;
                }
                snooze();
              }),
              "gives way, within the no_switch_guard"));
}

TEST_CASE("a wait that nothing may interrupt ends the process", "[guard]") {
  CHECK(tells(last_words_of([] {
                auto child = spin([] { sleep_for(1ms); });
                const no_switch_guard quiet;
                shield([&] { child.await(); });
              }),
              "waits: "));
}

TEST_CASE("a fiber that goes to another thread under a guard ends the process", "[guard]") {
  if (testing::under_tsan) return;  // a forked process makes no threads there
  CHECK(tells(last_words_of([] {
                thread there([] { sleep(); });
                const no_switch_guard quiet;
                const portal away(there);
              }),
              "goes elsewhere, within"));
  CHECK(tells(last_words_of([] {
                testing::foreign_loop there;
                std::optional<portal> away(std::in_place, there);
                const no_switch_guard quiet;
                away.reset();
              }),
              "goes elsewhere, within"));
}

TEST_CASE("what need not wait passes a guard, however often", "[guard]") {
  run([] {
    local::mutex lock;
    local::channel<int> numbers(100);
    const auto pipe = testing::make_pipe();
    const bool every_operation_waits = backend_name() == std::string_view("io_uring");
    int seen = 0, turns = 0;
    auto other = spin([&] {
      for (;; ++turns) snooze();
    });
    snooze();
    const int before = turns;
    {
      const no_switch_guard quiet;
      for (int i = 0; i < 1'000; ++i) {
        const std::lock_guard held(lock);
        if (i < 100) numbers.push(1);
        if (!every_operation_waits) {
          CHECK(io::write(pipe.second(), testing::bytes_of("x")) == 1);
          std::byte one[1];
          CHECK(io::read(pipe.first(), one) == 1);
        }
        checkpoint();
      }
      for (int i = 0; i < 100; ++i) seen += numbers.pop().value();
      spin([&] { seen += 10; });
    }
    CHECK(turns == before);
    CHECK(seen == 100);
    snooze();
    CHECK(seen == 110);
    other.cancel();
  });
}

TEST_CASE("a fiber that is interrupted under a guard is told at once", "[guard]") {
  run([] {
    local::mutex lock;
    int told = 0;
    auto body = spin([&] {
      for (int i = 0; i < 3; ++i) {
        try {
          const no_switch_guard quiet;
          if (i == 0) current().cancel();
          lock.lock();
          lock.unlock();
        } catch (const cancelled&) {
          ++told;
        }
      }
    });
    body.await();
    CHECK(told == 3);
    snooze();
  });
}

TEST_CASE("guards keep neither timers nor messages from coming", "[guard]") {
  run([] {
    bool slept = false, called = false;
    auto sleeper = spin([&] {
      sleep_for(1ms);
      slept = true;
    });
    std::thread stranger([&, here = here()] { here.post([&] { called = true; }); });
    stranger.join();
    std::size_t turns = 0;
    for (; (!slept || !called) && turns < 10'000'000; ++turns) {
      {
        const no_switch_guard quiet;
      }
      snooze();
    }
    CHECK(slept);
    CHECK(called);
    sleeper.await();
  });
}

TEST_CASE("a guard on a thread without fibers does nothing", "[guard]") {
  std::thread([] {
    const no_switch_guard quiet;
    std::this_thread::sleep_for(1ms);
  }).join();
}
