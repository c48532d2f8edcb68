// SPDX-License-Identifier: MIT
// Waiting for several at once: all of them, the first that returns, the first that has a value.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::first_error;
using testing::on_virtual_time;
using testing::second_error;

namespace {

template <typename F>
std::chrono::milliseconds time_of(F f) {
  const auto start = clock::now();
  f();
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start);
}

auto returns_after(clock::duration span, int value) {
  return [=] {
    sleep_for(span);
    return value;
  };
}

std::function<int()> fails_after(clock::duration span) {
  return [=]() -> int {
    sleep_for(span);
    throw first_error();
  };
}

auto has_after(clock::duration span, std::optional<int> value) {
  return [=] {
    sleep_for(span);
    return value;
  };
}

/// Notes when its frame is left.
struct leaving {
  bool& unwound;
  ~leaving() { unwound = true; }
};

/// Knows how many there are, and of moves only those that happened.
struct counted {
  static inline int constructed = 0;
  static inline int destroyed = 0;
  static inline int moved_from_losers = 0;

  explicit counted(bool is_loser) : loser(is_loser) { ++constructed; }
  counted(counted&& other) noexcept : loser(other.loser) {
    ++constructed;
    if (loser) ++moved_from_losers;
  }
  counted& operator=(counted&&) = delete;
  ~counted() { ++destroyed; }
  bool loser;
};

template <typename E>
bool holds(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

TEST_CASE("await_all() waits for the slowest callable and returns all results", "[await_all]") {
  on_virtual_time([] {
    std::tuple<int, std::monostate, std::unique_ptr<int>> results;
    CHECK(time_of([&] {
            results = await_all(
                returns_after(300ms, 1), [] { sleep_for(500ms); },
                [] { return std::make_unique<int>(3); });
          }) == 500ms);
    CHECK(std::get<0>(results) == 1);
    CHECK(*std::get<2>(results) == 3);
  });
}

TEST_CASE("await_all() returns nothing for callables that return nothing", "[await_all]") {
  run([] {
    int sum = 0;
    static_assert(std::is_void_v<decltype(await_all([] {}, [] {}))>);
    await_all([&] { sum += 1; }, [&] { sum += 2; });
    CHECK(sum == 3);
  });
}

TEST_CASE("await_all() returns a vector in the order of the range", "[await_all]") {
  run([] {
    std::vector<std::function<int()>> bodies;
    for (int i = 0; i < 1000; ++i) {
      bodies.emplace_back([i] {
        for (int round = 0; round < i % 7; ++round) snooze();
        return i;
      });
    }
    const std::vector<int> results = await_all(bodies);
    REQUIRE(results.size() == 1000);
    for (int i = 0; i < 1000; ++i) CHECK(results[static_cast<std::size_t>(i)] == i);
    const auto squares = [](bool value) { return [value] { return value; }; };
    CHECK(await_all(std::array{squares(true), squares(false)}) == std::vector<bool>{true, false});
    int calls = 0;
    const std::vector<std::function<void()>> silent(3, [&] { ++calls; });
    await_all(silent);
    CHECK(calls == 3);
  });
}

TEST_CASE("await_all() of an empty range returns at once, or throws a pending interruption",
          "[await_all]") {
  run([] {
    await_all();
    CHECK(await_all(std::vector<std::function<int()>>()).empty());
    await_all(std::vector<fiber_ref>());
    current().raise(first_error());
    CHECK_THROWS_AS(await_all(), first_error);
    current().raise(first_error());
    CHECK_THROWS_AS(await_all(std::vector<fiber_ref>()), first_error);
  });
}

TEST_CASE("await_all() cancels the others at the first failure, and rethrows it unchanged",
          "[await_all]") {
  on_virtual_time([] {
    bool unwound = false;
    const auto body = [&] {
      const leaving frame{unwound};
      sleep_for(1h);
    };
    const auto fails = [] {
      sleep_for(10ms);
      throw 42;
    };
    int failure_count = 0;
    CHECK(time_of([&] {
            try {
              await_all(body, fails);
            } catch (int error) {
              CHECK(unwound);
              failure_count = error;
            }
          }) == 10ms);
    CHECK(failure_count == 42);
    snooze();
  });
}

TEST_CASE("await_all() ends its fibers before its cancelled caller unwinds", "[await_all]") {
  on_virtual_time([] {
    int ends = 0;
    auto caller = spin([&] {
      std::vector<int> frame(100, 1);
      struct check_ended {
        int& count;
        ~check_ended() { CHECK(count == 2); }
      } const at_the_end{ends};
      const auto borrows = [&] {
        try {
          sleep();
        } catch (const cancelled&) {
          sleep_for(1ms);
          frame.push_back(1);
          ends += frame.back();
          throw;
        }
      };
      await_all(borrows, borrows);
    });
    sleep_for(50ms);
    CHECK(caller.cancel() == cancel_result::accepted);
    CHECK_THROWS_AS(caller.await(), fiber_cancelled);
    CHECK(ends == 2);
  });
}

TEST_CASE("await_all() throws if one of its fibers is cancelled from outside", "[await_all]") {
  run([] {
    auto caller = spin([] {
      CHECK_THROWS_AS(await_all([] { return 1; }, [] { sleep(); }), fiber_cancelled);
      CHECK_THROWS_AS(await_all([] {}, [] { sleep(); }), fiber_cancelled);
    });
    for (int call = 0; call < 2; ++call) {
      for (int i = 0; i < 4; ++i) snooze();
      caller.children().at(0).cancel();
      for (int i = 0; i < 4; ++i) snooze();
    }
    caller.await();
  });
}

TEST_CASE("await_any() returns the first result, and cancels the others", "[await_any]") {
  on_virtual_time([] {
    bool unwound = false;
    const auto slow = [&] {
      const leaving frame{unwound};
      sleep_for(500ms);
      return 500;
    };
    std::pair<std::size_t, int> first;
    CHECK(time_of([&] { first = await_any(slow, returns_after(100ms, 100)); }) == 100ms);
    CHECK(first == std::pair<std::size_t, int>(1, 100));
    CHECK(unwound);
    CHECK(await_any([] { sleep(); }, [] {}) == 1);
    CHECK(current().children().empty());
  });
}

TEST_CASE("await_any() waits for losers that take time to end", "[await_any]") {
  on_virtual_time([] {
    bool cleaned = false;
    const auto slow = [&] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(20ms);
        cleaned = true;
        throw first_error();  // nobody asks any more
      }
    };
    CHECK(await_any(slow, [] {}) == 1);
    CHECK(cleaned);
    snooze();
  });
}

TEST_CASE("await_any() drops failures of a loser's children, not of the winner's", "[await_any]") {
  run([] {
    const auto leaves_child = [] {
      spin([] {
        try {
          sleep();
        } catch (const cancelled&) {
          throw first_error();
        }
      });
      snooze();
    };
    const auto loser = [&] {
      leaves_child();
      sleep();
    };
    const auto later = [] {
      for (int i = 0; i < 5; ++i) snooze();
    };
    CHECK(await_any(loser, later, loser) == 1);
    snooze();
    CHECK_THROWS_AS(await_any(later, leaves_child), first_error);
    snooze();
  });
}

TEST_CASE("await_any() ignores failures unless all callables fail", "[await_any]") {
  on_virtual_time([] {
    CHECK(await_any(fails_after(10ms), std::function<int()>(returns_after(20ms, 7))) ==
          std::pair<std::size_t, int>(1, 7));
    std::vector<std::exception_ptr> errors;
    try {
      await_any(fails_after(10ms), [] { return throw second_error(), 1; });
    } catch (const all_failed& error) {
      errors = error.errors();
    }
    REQUIRE(errors.size() == 2);
    CHECK(holds<first_error>(errors[0]));
    CHECK(holds<second_error>(errors[1]));
  });
}

TEST_CASE("await_any() counts a callable cancelled from outside as failed", "[await_any]") {
  run([] {
    auto caller = spin([] {
      try {
        await_any([] { sleep(); }, [] { throw first_error(); });
      } catch (const all_failed& error) {
        CHECK(holds<fiber_cancelled>(error.errors().at(0)));
        CHECK(holds<first_error>(error.errors().at(1)));
        throw;
      }
    });
    for (int i = 0; i < 4; ++i) snooze();
    caller.children().at(0).cancel();
    CHECK_THROWS_AS(caller.await(), all_failed);
  });
}

TEST_CASE("await_any() refuses an empty range", "[await_any]") {
  run([] {
    CHECK_THROWS_AS(await_any(), std::invalid_argument);
    CHECK_THROWS_AS(await_any(std::vector<std::function<int()>>()), std::invalid_argument);
    CHECK_THROWS_AS(await_any(std::vector<fiber_ref>()), std::invalid_argument);
    CHECK_THROWS_AS(first_value(), std::invalid_argument);
    CHECK_THROWS_AS(first_value(std::vector<std::function<std::optional<int>()>>()),
                    std::invalid_argument);
    CHECK_THROWS_AS(first_value(std::vector<fiber<std::optional<int>>>()), std::invalid_argument);
  });
}

TEST_CASE("await_any() ends its fibers before its cancelled caller unwinds", "[await_any]") {
  on_virtual_time([] {
    int in_time = 0;
    const bool done = move_on_after(50ms, [&] {
      std::vector<int> frame(100, 1);
      const auto borrows = [&] {
        try {
          sleep();
        } catch (const cancelled&) {
          sleep_for(1ms);
          in_time += frame.back();
          throw;
        }
        return 1;
      };
      await_any(borrows, borrows);
    });
    CHECK(!done);
    CHECK(in_time == 2);
  });
}

TEST_CASE("await_any(): the earlier in the run queue wins if two finish together", "[await_any]") {
  run([] {
    CHECK(await_any([] { return 500; }, [] { return 100; }) == std::pair<std::size_t, int>(0, 500));
    std::vector<std::function<int()>> range{[] { return snooze(), 1; }, [] { return 2; }};
    CHECK(await_any(range) == std::pair<std::size_t, int>(1, 2));
  });
}

TEST_CASE("await_any() can be nested in await_all() in await_any()", "[await_any]") {
  on_virtual_time([] {
    const auto inner = [] {
      return await_any(returns_after(1h, 1), returns_after(10ms, 2)).second;
    };
    const auto middle = [&] {
      const auto [first, second] = await_all(inner, inner);
      return first + second;
    };
    CHECK(await_any(middle, returns_after(20ms, 0)) == std::pair<std::size_t, int>(0, 4));
    CHECK(await_any(middle, returns_after(5ms, 0)) == std::pair<std::size_t, int>(1, 0));
  });
}

TEST_CASE("first_value() returns the first result that is not empty", "[first_value]") {
  on_virtual_time([] {
    std::optional<int> value;
    CHECK(time_of([&] { value = first_value(has_after(500ms, 500), has_after(100ms, 100)); }) ==
          100ms);
    CHECK(value == 100);
    CHECK(time_of([&] { value = first_value(has_after(100ms, {}), has_after(500ms, 500)); }) ==
          500ms);
    CHECK(value == 500);
    CHECK(time_of([&] { value = first_value(has_after(100ms, {}), has_after(500ms, {})); }) ==
          500ms);
    CHECK(!value);
    CHECK(first_value(has_after(0ms, 500), has_after(0ms, 100)) == 500);
    CHECK(first_value(std::vector{has_after(5ms, 5), has_after(1ms, 1)}) == 1);
  });
}

TEST_CASE("first_value() throws a failure only if there is no value", "[first_value]") {
  on_virtual_time([] {
    const auto fails = []() -> std::optional<int> { throw first_error(); };
    const auto fails_later = []() -> std::optional<int> {
      sleep_for(1ms);
      throw second_error();
    };
    CHECK(first_value(fails, has_after(5ms, 5)) == 5);
    CHECK_THROWS_AS(first_value(fails_later, fails, has_after(5ms, {})), first_error);
  });
}

TEST_CASE("await_any() destroys a loser's result without moving it", "[await_any]") {
  counted::constructed = counted::destroyed = counted::moved_from_losers = 0;
  run([] {
    const auto winner = await_any([] { return counted(false); },
                                  [] {
                                    try {
                                      sleep();
                                    } catch (const cancelled&) {
                                    }
                                    return counted(true);
                                  });
    CHECK(winner.first == 0);
    CHECK(!winner.second.loser);
    const auto late = []() -> std::optional<counted> {
      try {
        sleep();
      } catch (const cancelled&) {
      }
      return std::optional<counted>(std::in_place, true);
    };
    const auto value =
        first_value(late, [] { return std::optional<counted>(std::in_place, false); }, late);
    CHECK((value && !value->loser));
  });
  CHECK(counted::constructed == counted::destroyed);
  CHECK(counted::moved_from_losers == 0);
}

TEST_CASE("await_any() of four callables on two threads has one winner and leaks nothing",
          "[await_any]") {
  const auto race_often = [](std::size_t& wrong) {
    run([&] {
      for (unsigned round = 0; round < 200; ++round) {
        const auto runner = [&](unsigned seed) {
          return [round, seed]() -> int {
            for (unsigned i = 0; i < (round >> seed) % 4; ++i) snooze();
            if ((round + seed) % 5 == 0) throw first_error();
            return static_cast<int>(seed);
          };
        };
        const auto [place, value] = await_any(runner(0), runner(1), runner(2), runner(3));
        const bool right = place == static_cast<std::size_t>(value) && (round + place) % 5 != 0;
        wrong += right && current().children().empty() ? 0 : 1;
      }
    });
  };
  std::size_t wrong_here = 0;
  std::size_t wrong_there = 0;
  std::thread other(race_often, std::ref(wrong_there));
  race_often(wrong_here);
  other.join();
  CHECK(wrong_here == 0);
  CHECK(wrong_there == 0);
}

TEST_CASE("await_all() over handles borrows them: the fibers continue when it returns",
          "[handles]") {
  run([] {
    auto a = spin([] { return 1; });
    auto b = spin([] { return std::string("two"); });
    auto endless = spin([] { sleep(); });
    await_all(a, b, fiber_ref(a));
    CHECK(a.await() == 1);
    CHECK(b.await() == "two");
    CHECK(!move_on_after(1ms, [&] { await_all(endless, a); }));
    CHECK(endless.state() == fiber_state::waiting);
    std::vector<fiber<int>> many;
    for (int i = 0; i < 10; ++i) many.push_back(spin(returns_after(1ms, i)));
    await_all(many);
    CHECK(many.back().state() == fiber_state::dead);
  });
}

TEST_CASE("await_all() over handles throws the first failure at once, and only once", "[handles]") {
  run([] {
    auto endless = spin([] { sleep(); });
    auto fails_later = spin([] {
      sleep_for(1ms);
      throw first_error();
    });
    CHECK_THROWS_AS(await_all(endless, fails_later), first_error);
    snooze();
    auto fails = spin([] { throw second_error(); });  // before anybody awaits it
    CHECK_THROWS_AS(await_all(endless, fails), second_error);
    for (int i = 0; i < 5; ++i) snooze();
    auto victim = spin([] { sleep(); });
    victim.cancel();
    CHECK_THROWS_AS(await_all(endless, victim), fiber_cancelled);
    CHECK(endless.state() == fiber_state::waiting);
  });
}

TEST_CASE("await_any() over handles returns the first value; the other fibers continue",
          "[handles]") {
  run([] {
    auto fails = spin([] { throw first_error(); });
    auto fails_later = spin([] {
      snooze();
      snooze();
      throw second_error();
    });
    auto slow = spin([] { sleep(); });
    auto quick = spin([] {
      sleep_for(1ms);
      return 1;
    });
    CHECK(await_any(fails, slow, quick, fails_later) == 2);
    for (int i = 0; i < 5; ++i) snooze();
    CHECK(slow.state() == fiber_state::waiting);
    CHECK(await_any(slow, quick) == 1);
    slow.cancel();
    try {
      await_any(std::vector<fiber_ref>{fails, slow});
      CHECK(false);
    } catch (const all_failed& error) {
      CHECK(holds<first_error>(error.errors().at(0)));
      CHECK(holds<fiber_cancelled>(error.errors().at(1)));
    }
  });
}

TEST_CASE("await_all() over handles is interrupted by another child's failure", "[handles]") {
  run([] {
    auto slow = spin([] { sleep(); });
    spin([] { throw second_error(); });
    CHECK_THROWS_AS(await_any(slow), second_error);
    CHECK(slow.state() == fiber_state::waiting);
  });
}

TEST_CASE("first_value() over handles returns a copy", "[handles]") {
  run([] {
    auto empty = spin([] { return std::optional<std::string>(); });
    auto full = spin([] {
      sleep_for(1ms);
      return std::optional<std::string>("value");
    });
    CHECK(first_value(empty, full) == "value");
    CHECK(full.await() == "value");
    CHECK(!first_value(empty));
    std::vector<fiber<std::optional<std::string>>> several;
    several.push_back(spin([]() -> std::optional<std::string> { throw first_error(); }));
    several.push_back(std::move(empty));
    CHECK_THROWS_AS(first_value(several), first_error);
    several.push_back(std::move(full));
    CHECK(first_value(several) == "value");
  });
}

TEST_CASE("await_all() refuses handles that cannot be awaited before it has an effect",
          "[handles]") {
  run([] {
    auto slow = spin([] { sleep(); });
    CHECK_THROWS_AS(await_all(slow, fiber_ref()), std::logic_error);
    CHECK_THROWS_AS(await_any(slow, fiber_ref()), std::logic_error);
    CHECK_THROWS_AS(await_any(slow, current()), std::logic_error);
    CHECK(current().children().size() == 1);
  });
}

TEST_CASE("await_all() accepts handles to fibers of other threads", "[handles][threads]") {
  run([] {
    std::optional<fiber<int>> value;
    std::optional<fiber<int>> error;
    std::atomic<int> spun{0};
    std::thread other([&] {
      run([&] {
        value.emplace(spin(returns_after(2ms, 1)));
        error.emplace(spin([]() -> int {
          sleep_for(1ms);
          throw first_error();
        }));
        spun = 1;
        try {
          while (spun == 1) sleep_for(1ms);
        } catch (const first_error&) {
        }
        while (spun == 1) sleep_for(1ms);
      });
    });
    while (spun == 0) sleep_for(1ms);
    CHECK(await_any(*error, *value) == 1);
    CHECK_THROWS_AS(await_all(*value, *error), first_error);
    spun = 2;
    other.join();
  });
}

TEST_CASE("await_any() goes on when an attempt fails because its child failed while ending",
          "[race]") {
  run([] {
    const auto won = await_any(
        []() -> int {
          spin([] {
            try {
              sleep();
            } catch (const cancelled&) {
              throw std::runtime_error("the clean-up of a child");
            }
          });
          snooze();
          throw std::runtime_error("an attempt");
        },
        []() -> int {
          sleep_for(20ms);
          return 7;
        });
    CHECK(won == std::pair<std::size_t, int>(1, 7));
  });
}
