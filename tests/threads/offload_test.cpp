// SPDX-License-Identifier: MIT
// Calls that block, made by plain threads while only one fiber waits.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <motet/threads/offload.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "catch.hpp"
#include "platform/workers.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::count_workers;
using testing::eventually;
using testing::limited_to;

namespace {

/// Counts those that live, and how many were destroyed on the thread it was made for.
struct witness {
  explicit witness(std::atomic<int>& alive) : alive_(&alive) { ++*alive_; }
  witness(witness&& from) noexcept : alive_(from.alive_) { ++*alive_; }
  witness& operator=(witness&&) = delete;
  ~witness() { --*alive_; }

 private:
  std::atomic<int>* alive_;
};

/// Returns: what a cancelled fiber throws.
std::exception_ptr a_cancellation() {
  std::exception_ptr kept;
  auto fiber = spin([&] {
    try {
      sleep();
    } catch (const cancelled&) {
      kept = std::current_exception();
      throw;
    }
  });
  snooze();
  fiber.cancel("enough");
  CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
  return kept;
}

}  // namespace

TEST_CASE("offload returns what was returned on another thread", "[offload]") {
  run([] {
    const auto here = std::this_thread::get_id();
    CHECK(offload([] { return std::this_thread::get_id(); }) != here);
    CHECK(offload([] { return 42; }) == 42);
    CHECK(*offload([] { return std::make_unique<int>(7); }) == 7);
    int local = 1;
    int& same = offload([&]() -> int& { return local; });
    CHECK(&same == &local);
    offload([&] { local = 2; });
    CHECK(local == 2);
    CHECK(offload([text = std::string("a callable that is moved")] { return text; }).size() == 24);
    CHECK(offload_owned([] { return 42; }) == 42);
    CHECK(*offload_owned([kept = std::make_unique<int>(8)]() mutable { return std::move(kept); }) ==
          8);
    offload_owned([] {});
  });
}

TEST_CASE("what a job throws is thrown to its caller", "[offload]") {
  run([] {
    const auto fail = [] { throw std::out_of_range("far"); };
    CHECK_THROWS_AS(offload(fail), std::out_of_range);
    CHECK_THROWS_AS(offload_owned(fail), std::out_of_range);
  });
}

TEST_CASE("a cancellation that a job throws is not the caller's", "[offload]") {
  run([] {
    const std::exception_ptr foreign = a_cancellation();
    const auto fail = [&] { std::rethrow_exception(foreign); };
    CHECK_THROWS_AS(offload(fail), fiber_cancelled);
    CHECK_THROWS_AS(offload_owned(fail), fiber_cancelled);
    checkpoint();
  });
}

TEST_CASE("while a job blocks its thread, others of the caller's run", "[offload]") {
  int best = 0;
  for (int attempt = 0; attempt < 10 && best < 18; ++attempt) {
    run([&] {
      int ticks = 0;
      const auto from = std::chrono::steady_clock::now();
      auto ticker = spin([&] { every(10ms, [&] { ++ticks; }); });
      offload([] { std::this_thread::sleep_for(200ms); });
      best = std::max(best, ticks);
      // Virtual time does not run ahead of what the job needs of the real one.
      CHECK(ticks * 10ms <= std::chrono::steady_clock::now() - from + 10ms);
      ticker.cancel();
    });
  }
  CHECK(best >= 18);
}

TEST_CASE("an interruption waits for the end of a job that borrows", "[offload]") {
  run([] {
    std::atomic<bool> over{false};
    bool over_when_unwound = false;
    int returned = 0;
    auto fiber = spin([&] {
      try {
        returned = offload([&] {
          std::this_thread::sleep_for(60ms);
          over = true;
          return 5;
        });
        snooze();
      } catch (const cancelled&) {
        over_when_unwound = over;
        throw;
      }
    });
    sleep_for(10ms);
    fiber.cancel();
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK(over_when_unwound);
    CHECK(returned == 5);
  });
}

TEST_CASE("an exception that is raised meanwhile is thrown after the result", "[offload]") {
  run([] {
    std::atomic<bool> go{false};
    std::string seen;
    auto fiber = spin([&] {
      offload([&] { go.wait(false); });
      seen = "returned";
      try {
        snooze();
      } catch (const std::runtime_error& e) {
        seen += e.what();
      }
    });
    snooze();
    CHECK(fiber.raise(std::runtime_error(", then raised")));
    snooze();
    CHECK(seen.empty());
    go = true;
    go.notify_all();
    fiber.await();
    CHECK(seen == "returned, then raised");
  });
}

TEST_CASE("a deadline is late by what is left of the job", "[offload]") {
  run([] {
    std::atomic<bool> over{false};
    CHECK_THROWS_AS(with_timeout(5ms,
                                 [&] {
                                   offload([&] {
                                     std::this_thread::sleep_for(30ms);
                                     over = true;
                                   });
                                   sleep();
                                 }),
                    timed_out);
    CHECK(over);
  });
}

TEST_CASE("a job that takes a stop_token is asked to stop when its caller is interrupted",
          "[offload]") {
  run([] {
    const auto patiently = [](std::stop_token token) {
      while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
      return 9;
    };
    int returned = 0;
    const bool in_time = move_on_after(10ms, [&] {
      returned = offload(patiently);
      snooze();
    });
    CHECK_FALSE(in_time);
    CHECK(returned == 9);
    CHECK(offload([](std::stop_token token) { return token.stop_possible(); }));

    std::atomic<bool> stopped{false};
    CHECK_FALSE(move_on_after(10ms, [&] {
      offload_owned([&](std::stop_token token) {
        while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
        stopped = true;
      });
    }));
    eventually([&] { return stopped.load(); });
  });
}

TEST_CASE("a job that nobody has begun is not begun when its caller is interrupted", "[offload]") {
  const limited_to one(1);
  run([] {
    std::atomic<bool> open{false};
    std::atomic<int> alive{0};
    std::atomic<bool> begun{false};
    group all;
    all.spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    CHECK_FALSE(move_on_after(1ms, [&] { offload([&] { begun = true; }); }));
    CHECK_FALSE(
        move_on_after(1ms, [&] { offload_owned([&, held = witness(alive)] { begun = true; }); }));
    CHECK(alive == 0);
    open = true;
    open.notify_all();
    all.await_all();
    offload([] {});
    CHECK_FALSE(begun);
  });
}

TEST_CASE("an interruption that is pending keeps a job from being begun", "[offload]") {
  run([] {
    bool begun = false;
    auto fiber = spin([&] {
      current().cancel();
      offload([&] { begun = true; });
    });
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK_FALSE(begun);
  });
}

TEST_CASE("a job that owns what it touches is left at once, and destroyed once on its thread",
          "[offload]") {
  run([] {
    std::atomic<int> alive{0};
    std::atomic<bool> open{false};
    std::atomic<bool> over{false};
    CHECK_THROWS_AS(with_timeout(5ms,
                                 [&] {
                                   offload_owned([&, held = witness(alive)] {
                                     open.wait(false);
                                     over = true;
                                     return witness(alive);
                                   });
                                 }),
                    timed_out);
    CHECK_FALSE(over);
    CHECK(alive == 1);
    open = true;
    open.notify_all();
    eventually([&] { return alive == 0; });
    CHECK(over);
  });
}

TEST_CASE("what a job throws after it was left is dropped", "[offload]") {
  options strict;
  std::atomic<int> unhandled{0};
  strict.on_unhandled = [&](std::exception_ptr) { ++unhandled; };
  run(strict, [] {
    std::atomic<int> alive{0};
    std::atomic<bool> open{false};
    CHECK_FALSE(move_on_after(5ms, [&] {
      offload_owned([&, held = witness(alive)] {
        open.wait(false);
        throw std::runtime_error("to nobody");
      });
    }));
    open = true;
    open.notify_all();
    eventually([&] { return alive == 0; });
  });
  CHECK(unhandled == 0);
}

TEST_CASE("whenever an interruption comes, a job is over or left exactly once", "[offload]") {
  run([] {
    std::atomic<int> alive{0};
    const std::size_t rounds = testing::scaled(20'000, 400);
    std::size_t returned = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      auto fiber = spin([&] {
        offload_owned([held = witness(alive)] {});
        ++returned;
      });
      auto lending = spin([&] {
        bool done = false;
        offload([&] { done = true; });
        if (!done) throw std::logic_error("it returned too early");
      });
      for (std::size_t turn = 0; turn < i % 7; ++turn) {
        snooze();
        if (i % 3 == 0) std::this_thread::yield();
      }
      if (i % 5 == 0) sleep_for(std::chrono::microseconds(i % 100));
      fiber.cancel();
      lending.cancel();
      for (auto* each : {&fiber, &lending}) {
        try {
          each->await();
        } catch (const fiber_cancelled&) {
        }
      }
    }
    eventually([&] { return alive == 0; });
    CHECK(returned > 0);
    CHECK(returned < rounds);
  });
}

TEST_CASE("a thread without a runtime makes the call itself", "[offload]") {
  bool here = false;
  bool owned_here = false;
  bool threw = false;
  std::thread plain([&] {
    const auto self = std::this_thread::get_id();
    here = offload([] { return std::this_thread::get_id(); }) == self;
    owned_here = offload_owned([] { return std::this_thread::get_id(); }) == self;
    try {
      offload([] { throw std::runtime_error("here"); });
    } catch (const std::runtime_error&) {
      threw = true;
    }
  });
  plain.join();
  CHECK(here);
  CHECK(owned_here);
  CHECK(threw);
}

TEST_CASE("a job may use what needs no runtime", "[offload]") {
  run([] {
    channel<int> numbers;
    group both;
    both.spin([&] {
      offload([&] {
        for (int i = 0; i < 10; ++i) numbers.push(i);
        numbers.close();
      });
    });
    int sum = 0;
    for (const int each : numbers) sum += each;
    both.await_all();
    CHECK(sum == 45);
  });
}

TEST_CASE("a runtime that a job starts ends with the job", "[offload]") {
  const limited_to one(1);
  run([] {
    for (int i = 0; i < 3; ++i) {
      std::atomic<bool> ended{false};
      offload([&] {
        auto forgotten = spin([&ended] {
          try {
            sleep();
          } catch (const cancelled&) {
            ended = true;
            throw;
          }
        });
        sleep_for(1ms);
      });
      CHECK(ended);
    }
    CHECK(offload([] { return run([] { return current().id() != 0; }); }));
  });
}

TEST_CASE("a dump says what waits for a job, and that it cannot be interrupted", "[offload]") {
  run([] {
    std::atomic<bool> open{false};
    auto fiber = spin({.name = "patient"}, [&] { offload([&] { open.wait(false); }); });
    snooze();
    std::ostringstream before;
    dump(before);
    CHECK(before.str().find("end of an offloaded job") != std::string::npos);
    fiber.cancel();
    snooze();
    std::ostringstream after;
    dump(after);
    CHECK(after.str().find("cancelling") != std::string::npos);
    open = true;
    open.notify_all();
    fiber.await();
  });
}

// ThreadSanitizer lets no forked child of several threads begin another, or end its last; and what
// only the stacks of other threads refer to is a leak in a child that ends, for LeakSanitizer.

TEST_CASE("a forked child has threads of its own", "[offload][fork]") {
  if (testing::under_tsan) return;
  run([] {
    offload([] {});
    std::atomic<bool> open{false};
    auto other = spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const bool fine =
          offload([] { return count_workers(); }) == 1 && offload_owned([] { return 3; }) == 3;
      ::_exit(fine ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    open = true;
    open.notify_all();
    other.await();
  });
}

TEST_CASE("a child that a job forks ends with the job", "[offload][fork]") {
  if (testing::under_tsan || testing::under_asan) return;
  run([] {
    const int code = offload([] {
      const pid_t child = ::fork();
      if (child == 0) return 0;
      int status = -1;
      ::waitpid(child, &status, 0);
      return status;
    });
    CHECK(code == 0);
  });
}
