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
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    run([&] { program(); });
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string message;
  char room[512];
  for (ssize_t count; (count = ::read(ends[0], room, sizeof room)) > 0;) {
    message.append(room, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  INFO(message);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
  return message;
}

bool tells(const std::string& message, std::string_view part) {
  return message.find("motet: fiber ") != message.npos && message.find(part) != message.npos &&
         message.find("no_switch_test.cpp:") != message.npos &&
         message.find("std::recursive_mutex") != message.npos;
}

}  // namespace

TEST_CASE("no_switch_guard: a fiber that would wait within it ends the process", "[guard]") {
  CHECK(tells(last_words_of([] {
                const no_switch_guard quiet;
                sleep_for(1ms);
              }),
              "waits: sleep, within the no_switch_guard made at "));
  CHECK(tells(last_words_of([] {
                spin({.name = "holder"}, [] {
                  local::mutex lock;
                  lock.lock();
                  auto second = spin([&] { lock.lock(); });
                  const no_switch_guard quiet;
                  second.await();
                }).await();
              }),
              "fiber holder waits: "));
}

TEST_CASE("no_switch_guard: a fiber that would yield within it ends the process", "[guard]") {
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

TEST_CASE("no_switch_guard: an uninterruptible wait within it ends the process", "[guard]") {
  CHECK(tells(last_words_of([] {
                auto child = spin([] { sleep_for(1ms); });
                const no_switch_guard quiet;
                shield([&] { child.await(); });
              }),
              "waits: "));
}

TEST_CASE("no_switch_guard: a fiber that migrates within it ends the process", "[guard]") {
  if (testing::under_tsan) return;  // a forked process makes no threads there
  CHECK(tells(last_words_of([] {
                thread worker([] { sleep(); });
                const no_switch_guard quiet;
                const portal away(worker);
              }),
              "goes elsewhere, within"));
  CHECK(tells(last_words_of([] {
                testing::foreign_loop loop;
                std::optional<portal> away(std::in_place, loop);
                const no_switch_guard quiet;
                away.reset();
              }),
              "goes elsewhere, within"));
}

TEST_CASE("no_switch_guard lets calls pass that need not wait", "[guard]") {
  run([] {
    local::mutex lock;
    local::channel<int> numbers(100);
    const auto pipe = testing::make_pipe();
    const bool every_operation_waits = backend_name() == std::string_view("io_uring");
    int events = 0, turns = 0;
    auto second = spin([&] {
      for (;; ++turns) snooze();
    });
    snooze();
    const int turns_before = turns;
    {
      const no_switch_guard quiet;
      for (int i = 0; i < 1'000; ++i) {
        const std::lock_guard guard(lock);
        if (i < 100) numbers.push(1);
        if (!every_operation_waits) {
          CHECK(io::write(pipe.second(), testing::bytes_of("x")) == 1);
          std::byte byte[1];
          CHECK(io::read(pipe.first(), byte) == 1);
        }
        checkpoint();
      }
      for (int i = 0; i < 100; ++i) events += numbers.pop().value();
      spin([&] { events += 10; });
    }
    CHECK(turns == turns_before);
    CHECK(events == 100);
    snooze();
    CHECK(events == 110);
    second.cancel();
  });
}

TEST_CASE("no_switch_guard: an interruption within it is thrown at once", "[guard]") {
  run([] {
    local::mutex lock;
    int throws = 0;
    auto body = spin([&] {
      for (int i = 0; i < 3; ++i) {
        try {
          const no_switch_guard quiet;
          if (i == 0) current().cancel();
          lock.lock();
          lock.unlock();
        } catch (const cancelled&) {
          ++throws;
        }
      }
    });
    body.await();
    CHECK(throws == 3);
    snooze();
  });
}

TEST_CASE("no_switch_guard does not hold up timers or messages", "[guard]") {
  run([] {
    bool slept = false, called = false;
    auto sleeper = spin([&] {
      sleep_for(1ms);
      slept = true;
    });
    std::thread stranger([&, home = here()] { home.post([&] { called = true; }); });
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

TEST_CASE("no_switch_guard has no effect on a thread without fibers", "[guard]") {
  std::thread([] {
    const no_switch_guard quiet;
    std::this_thread::sleep_for(1ms);
  }).join();
}
