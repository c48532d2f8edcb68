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
  witness(witness&& source) noexcept : alive_(source.alive_) { ++*alive_; }
  witness& operator=(witness&&) = delete;
  ~witness() { --*alive_; }

 private:
  std::atomic<int>* alive_;
};

/// Returns: what a cancelled fiber throws.
std::exception_ptr a_cancellation() {
  std::exception_ptr stored;
  auto fiber = spin([&] {
    try {
      sleep();
    } catch (const cancelled&) {
      stored = std::current_exception();
      throw;
    }
  });
  snooze();
  fiber.cancel("enough");
  CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
  return stored;
}

}  // namespace

TEST_CASE("offload() returns what its function returns on another thread", "[offload]") {
  run([] {
    const auto caller = std::this_thread::get_id();
    CHECK(offload([] { return std::this_thread::get_id(); }) != caller);
    CHECK(offload([] { return 42; }) == 42);
    CHECK(*offload([] { return std::make_unique<int>(7); }) == 7);
    int local = 1;
    int& reference = offload([&]() -> int& { return local; });
    CHECK(&reference == &local);
    offload([&] { local = 2; });
    CHECK(local == 2);
    CHECK(offload([text = std::string("a callable that is moved")] { return text; }).size() == 24);
    CHECK(offload_owned([] { return 42; }) == 42);
    CHECK(*offload_owned(
              [payload = std::make_unique<int>(8)]() mutable { return std::move(payload); }) == 8);
    offload_owned([] {});
  });
}

TEST_CASE("offload() throws what its function throws", "[offload]") {
  run([] {
    const auto fail = [] { throw std::out_of_range("far"); };
    CHECK_THROWS_AS(offload(fail), std::out_of_range);
    CHECK_THROWS_AS(offload_owned(fail), std::out_of_range);
  });
}

TEST_CASE("offload() does not take a job's cancelled for the caller's", "[offload]") {
  run([] {
    const std::exception_ptr foreign = a_cancellation();
    const auto fail = [&] { std::rethrow_exception(foreign); };
    CHECK_THROWS_AS(offload(fail), fiber_cancelled);
    CHECK_THROWS_AS(offload_owned(fail), fiber_cancelled);
    checkpoint();
  });
}

TEST_CASE("offload() lets other fibers run while the job blocks its thread", "[offload]") {
  int best = 0;
  for (int attempt = 0; attempt < 10 && best < 18; ++attempt) {
    run([&] {
      int ticks = 0;
      const auto start = std::chrono::steady_clock::now();
      auto ticker = spin([&] { every(10ms, [&] { ++ticks; }); });
      offload([] { std::this_thread::sleep_for(200ms); });
      best = std::max(best, ticks);
      // Virtual time does not run ahead of what the job needs of the real one.
      CHECK(ticks * 10ms <= std::chrono::steady_clock::now() - start + 10ms);
      ticker.cancel();
    });
  }
  CHECK(best >= 18);
}

TEST_CASE("offload() ends an interruption only after a job that borrows", "[offload]") {
  run([] {
    std::atomic<bool> finished{false};
    bool over_when_unwound = false;
    int returns = 0;
    auto fiber = spin([&] {
      try {
        returns = offload([&] {
          std::this_thread::sleep_for(60ms);
          finished = true;
          return 5;
        });
        snooze();
      } catch (const cancelled&) {
        over_when_unwound = finished;
        throw;
      }
    });
    sleep_for(10ms);
    fiber.cancel();
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK(over_when_unwound);
    CHECK(returns == 5);
  });
}

TEST_CASE("offload() returns its result before a raised exception is thrown", "[offload]") {
  run([] {
    std::atomic<bool> go{false};
    std::string events;
    auto fiber = spin([&] {
      offload([&] { go.wait(false); });
      events = "returned";
      try {
        snooze();
      } catch (const std::runtime_error& e) {
        events += e.what();
      }
    });
    snooze();
    CHECK(fiber.raise(std::runtime_error(", then raised")));
    snooze();
    CHECK(events.empty());
    go = true;
    go.notify_all();
    fiber.await();
    CHECK(events == "returned, then raised");
  });
}

TEST_CASE("offload() under a deadline returns only after the job", "[offload]") {
  run([] {
    std::atomic<bool> finished{false};
    CHECK_THROWS_AS(with_timeout(5ms,
                                 [&] {
                                   offload([&] {
                                     std::this_thread::sleep_for(30ms);
                                     finished = true;
                                   });
                                   sleep();
                                 }),
                    timed_out);
    CHECK(finished);
  });
}

TEST_CASE("offload() requests a stop when its caller is interrupted", "[offload]") {
  run([] {
    const auto patiently = [](std::stop_token token) {
      while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
      return 9;
    };
    int returns = 0;
    const bool in_time = move_on_after(10ms, [&] {
      returns = offload(patiently);
      snooze();
    });
    CHECK_FALSE(in_time);
    CHECK(returns == 9);
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

TEST_CASE("offload() never starts a queued job whose caller was interrupted", "[offload]") {
  const limited_to limit(1);
  run([] {
    std::atomic<bool> open{false};
    std::atomic<int> alive{0};
    std::atomic<bool> started{false};
    group members;
    members.spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    CHECK_FALSE(move_on_after(1ms, [&] { offload([&] { started = true; }); }));
    CHECK_FALSE(move_on_after(
        1ms, [&] { offload_owned([&, payload = witness(alive)] { started = true; }); }));
    CHECK(alive == 0);
    open = true;
    open.notify_all();
    members.await_all();
    offload([] {});
    CHECK_FALSE(started);
  });
}

TEST_CASE("offload() does not start a job if an interruption is pending", "[offload]") {
  run([] {
    bool started = false;
    auto fiber = spin([&] {
      current().cancel();
      offload([&] { started = true; });
    });
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK_FALSE(started);
  });
}

TEST_CASE("offload_owned() leaves its job at once, and destroys it once on its thread",
          "[offload]") {
  run([] {
    std::atomic<int> alive{0};
    std::atomic<bool> open{false};
    std::atomic<bool> finished{false};
    CHECK_THROWS_AS(with_timeout(200ms,
                                 [&] {
                                   offload_owned([&, payload = witness(alive)] {
                                     open.wait(false);
                                     finished = true;
                                     return witness(alive);
                                   });
                                 }),
                    timed_out);
    CHECK_FALSE(finished);
    CHECK(alive == 1);
    open = true;
    open.notify_all();
    eventually([&] { return alive == 0; });
    CHECK(finished);
  });
}

TEST_CASE("offload_owned() drops the exception of an abandoned job", "[offload]") {
  options strict;
  std::atomic<int> unhandled{0};
  strict.on_unhandled = [&](std::exception_ptr) { ++unhandled; };
  run(strict, [] {
    std::atomic<int> alive{0};
    std::atomic<bool> open{false};
    CHECK_FALSE(move_on_after(5ms, [&] {
      offload_owned([&, payload = witness(alive)] {
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

TEST_CASE("offload(): an interruption at any time finishes or abandons a job exactly once",
          "[offload]") {
  run([] {
    std::atomic<int> alive{0};
    const std::size_t rounds = testing::scaled(20'000, 400);
    std::size_t returns = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      auto fiber = spin([&] {
        offload_owned([payload = witness(alive)] {});
        ++returns;
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
      for (auto* job : {&fiber, &lending}) {
        try {
          job->await();
        } catch (const fiber_cancelled&) {
        }
      }
    }
    eventually([&] { return alive == 0; });
    CHECK(returns > 0);
    CHECK(returns < rounds);
  });
}

TEST_CASE("offload() on a thread without a runtime calls the function itself", "[offload]") {
  bool ran_on_caller = false;
  bool owned_here = false;
  bool threw = false;
  std::thread plain([&] {
    const auto self = std::this_thread::get_id();
    ran_on_caller = offload([] { return std::this_thread::get_id(); }) == self;
    owned_here = offload_owned([] { return std::this_thread::get_id(); }) == self;
    try {
      offload([] { throw std::runtime_error("here"); });
    } catch (const std::runtime_error&) {
      threw = true;
    }
  });
  plain.join();
  CHECK(ran_on_caller);
  CHECK(owned_here);
  CHECK(threw);
}

TEST_CASE("offload(): a job may use functions that need no runtime", "[offload]") {
  run([] {
    channel<int> numbers;
    group fibers;
    fibers.spin([&] {
      offload([&] {
        for (int i = 0; i < 10; ++i) numbers.push(i);
        numbers.close();
      });
    });
    int sum = 0;
    for (const int number : numbers) sum += number;
    fibers.await_all();
    CHECK(sum == 45);
  });
}

TEST_CASE("offload(): a runtime that a job starts ends with the job", "[offload]") {
  const limited_to limit(1);
  run([] {
    for (int i = 0; i < 3; ++i) {
      std::atomic<bool> ended{false};
      offload([&] {
        auto dropped = spin([&ended] {
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

TEST_CASE("dump() shows a fiber that waits for offload(), and that it is uninterruptible",
          "[offload]") {
  run([] {
    std::atomic<bool> open{false};
    auto fiber = spin({.name = "patient"}, [&] { offload([&] { open.wait(false); }); });
    snooze();
    std::ostringstream dump_before;
    dump(dump_before);
    CHECK(dump_before.str().find("end of an offloaded job") != std::string::npos);
    fiber.cancel();
    snooze();
    std::ostringstream dump_after;
    dump(dump_after);
    CHECK(dump_after.str().find("cancelling") != std::string::npos);
    open = true;
    open.notify_all();
    fiber.await();
  });
}

// ThreadSanitizer lets no forked child of several threads begin another, or end its last; and what
// only the stacks of other threads refer to is a leak in a child that ends, for LeakSanitizer.

TEST_CASE("offload() in a forked child has threads of its own", "[offload][fork]") {
  if (testing::under_tsan) return;
  run([] {
    offload([] {});
    std::atomic<bool> open{false};
    auto second = spin([&] { offload([&] { open.wait(false); }); });
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
    second.await();
  });
}

TEST_CASE("offload(): a child that a job forks ends with the job", "[offload][fork]") {
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
