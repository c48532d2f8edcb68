// SPDX-License-Identifier: MIT
// Statics of functions, and call_once, whose initialisation waits: other fibers wait for it as
// fibers, so that their thread can go on with it.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "backends/poll_backend.hpp"
#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// ThreadSanitizer has functions of its own in the same place, which block.
constexpr bool blocks_threads = testing::under_tsan;

/// Calls `use` in ten fibers.
template <typename Use>
void use_from_many(Use use) {
  group users;
  for (int i = 0; i < 10; ++i) users.spin(use);
  users.await_all();
}

struct counted {
  explicit counted(std::atomic<int>& count) {
    sleep_for(5ms);
    number = ++count;
  }
  int number = 0;
};

/// A backend of a program that has something to initialise.
class once_backend : public testing::poll_backend {
 public:
  explicit once_backend(std::once_flag& once) : once_(once) {}
  void poll(time_point deadline, completions& output) override {
    std::call_once(once_, [] {});
    poll_backend::poll(deadline, output);
  }

 private:
  std::once_flag& once_;
};

options polling_after(std::once_flag& once) {
  options config;
  config.make_backend = [&once](const backend_options&) {
    return std::make_unique<once_backend>(once);
  };
  return config;
}

}  // namespace

TEST_CASE("static_guards: fibers wait for a static that one of them initialises",
          "[static_guard]") {
  if (blocks_threads) return;
  run([] {
    static std::atomic<int> constructed{0};
    int uses = 0;
    use_from_many([&] {
      static const counted one(constructed);
      uses += one.number;
    });
    CHECK(constructed == 1);
    CHECK(uses == 10);
  });
}

TEST_CASE("static_guards: a static whose initialisation throws is initialised by the next fiber",
          "[static_guard]") {
  if (blocks_threads) return;
  run([] {
    static std::atomic<int> attempts{0};
    int throws = 0;
    const auto make = [] {
      sleep_for(1ms);
      if (++attempts < 3) throw std::runtime_error("not yet");
      return attempts.load();
    };
    use_from_many([&] {
      try {
        static const int value = make();
        CHECK(value == 3);
      } catch (const std::runtime_error&) {
        ++throws;
      }
    });
    CHECK(attempts == 3);
    CHECK(throws == 2);
  });
}

TEST_CASE("static_guards: fibers wait for a std::call_once() that one of them runs",
          "[static_guard]") {
  if (blocks_threads) return;
  run([] {
    std::once_flag once;
    int calls = 0;
    int throws = 0;
    use_from_many([&] {
      const int number = calls;  // each callable has its own captures
      try {
        std::call_once(once, [&calls, number] {
          sleep_for(1ms);
          CHECK(number == 0);
          if (++calls < 3) throw std::runtime_error("not yet");
        });
        CHECK(calls == 3);
      } catch (const std::runtime_error&) {
        ++throws;
      }
    });
    CHECK(calls == 3);
    CHECK(throws == 2);
  });
}

TEST_CASE("static_guards: several statics are initialised at once, and one within another",
          "[static_guard]") {
  if (blocks_threads) return;
  run([] {
    std::once_flag outer;
    std::once_flag inner;
    std::once_flag second_flag;
    int calls = 0;
    const auto wait_and_count = [&] {
      sleep_for(2ms);
      ++calls;
    };
    group users;
    for (int i = 0; i < 5; ++i) {
      users.spin([&] {
        std::call_once(outer, [&] {
          sleep_for(1ms);
          std::call_once(inner, wait_and_count);
          ++calls;
        });
      });
      users.spin([&] { std::call_once(inner, wait_and_count); });
      users.spin([&] { std::call_once(second_flag, wait_and_count); });
    }
    users.await_all();
    CHECK(calls == 3);
  });
}

TEST_CASE("static_guards: an interruption waits for the end of an initialisation",
          "[static_guard]") {
  if (blocks_threads || testing::on_sim()) return;
  run([] {
    std::once_flag once;
    auto first = spin([&] { std::call_once(once, [] { sleep_for(30ms); }); });
    snooze();
    bool is_over = false;
    const bool in_time = move_on_after(1ms, [&] {
      std::call_once(once, [] {});
      is_over = true;
      snooze();
    });
    CHECK(is_over);
    CHECK_FALSE(in_time);
    first.await();
  });
}

TEST_CASE("static_guards: threads share an initialisation that waits", "[static_guard]") {
  if (blocks_threads) return;
  for (int round = 0; round < 20; ++round) {
    std::once_flag once;
    std::atomic<int> calls{0};
    const auto use = [&] {
      std::call_once(once, [&] {
        sleep_for(200us);
        ++calls;
      });
      CHECK(calls == 1);
    };
    std::thread plain([&] { std::call_once(once, [&] { ++calls; }); });
    std::thread remote([&] { run([&] { use_from_many(use); }); });
    run([&] { use_from_many(use); });
    remote.join();
    plain.join();
    CHECK(calls == 1);
  }
}

TEST_CASE("static_guards: an initialisation within a poll blocks its thread", "[static_guard]") {
  if (blocks_threads) return;
  std::once_flag once;
  std::atomic<bool> started{false};
  std::thread remote([&] {
    run([&] {
      std::call_once(once, [&] {
        started = true;
        std::this_thread::sleep_for(20ms);
      });
    });
  });
  while (!started) std::this_thread::yield();
  int turns = 0;
  run(polling_after(once), [&] {
    auto sleeper = spin([] { sleep_for(1ms); });
    for (int i = 0; i < 1'000; ++i) {
      snooze();
      ++turns;
    }
    sleeper.await();
  });
  remote.join();
  CHECK(turns == 1'000);
}

TEST_CASE("static_guards leaves pthread_once() unchanged without fibers", "[static_guard]") {
  static std::atomic<int> calls{0};
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  for (int i = 0; i < 3; ++i) CHECK(::pthread_once(&once, [] { ++calls; }) == 0);
  CHECK(calls == 1);
}
