// SPDX-License-Identifier: MIT
// What no switchpoint throws any more: on_unhandled is told of it, once.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;

namespace {

/// Options that count what on_unhandled is told.
struct counting {
  counting() {
    chosen.deadlock_report = 0ms;
    chosen.on_unhandled = [this](const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const oops&) {
        ++told;
      } catch (...) {
        told = -1000;
      }
    };
  }
  options chosen;
  std::atomic<int> told{0};
};

}  // namespace

TEST_CASE("what is raised after the last switchpoint goes to on_unhandled, the result stands",
          "[raise]") {
  counting told;
  run(told.chosen, [&] {
    channel<int> items(1);
    auto popping = spin([&] { return *items.pop(); });
    testing::settle();
    items.push(7);  // its wait is over
    CHECK(popping.raise(oops()));
    CHECK_FALSE(popping.raise(oops()));
    CHECK(popping.await() == 7);
    CHECK(told.told == 1);

    auto failing = spin([&] {
      items.pop();
      throw std::logic_error("its own");
    });
    testing::settle();
    items.push(1);
    CHECK(failing.raise(oops()));
    CHECK_THROWS_AS(failing.await(), std::logic_error);
    CHECK(told.told == 2);

    auto late = spin([] {});
    late.await();
    CHECK_FALSE(late.raise(oops()));
  });
  CHECK(told.told == 2);
}

TEST_CASE("a read that has been answered keeps its bytes, and what was raised is told", "[raise]") {
  counting told;
  run(told.chosen, [&] {
    auto ends = testing::make_socket_pair();
    auto others = testing::make_socket_pair();
    int accepted = 0;
    for (int round = 0; round < 20; ++round) {
      std::array<std::byte, 8> buffer{};
      std::array<std::byte, 8> other{};
      fiber_ref victim;
      auto raising = spin([&] {
        io::read(others.first(), other);
        return victim.raise(oops());  // the victim's read is over by now, or not yet
      });
      auto reading = spin([&] { return io::read(ends.first(), buffer); });
      victim = reading;
      testing::settle();
      REQUIRE(::write(others.second(), "x", 1) == 1);
      REQUIRE(::write(ends.second(), "abc", 3) == 3);
      std::size_t got = 0;
      try {
        got = reading.await();
      } catch (const oops&) {
        CHECK(testing::take_all(ends.first()) == "abc");
        continue;
      }
      CHECK(got == 3);
      const int too_late = raising.await() ? 1 : 0;
      accepted += too_late;
      CHECK(told.told.exchange(0) == too_late);
    }
    // libev makes a call when its descriptor's turn has come, so it may be interrupted until then.
    if (backend_name() != "libev" && !testing::kernel_acts_any_time()) CHECK(accepted > 0);
  });
}

TEST_CASE("what main is raised at its end is told", "[raise]") {
  counting told;
  run(told.chosen, [&] {
    const fiber_ref me = current();
    spin([me] { CHECK(me.raise(oops())); });
    notification never;
    channel<int> items(1);
    auto giving = spin([&] { items.push(1); });
    shield([&] { giving.await(); });
  });
  CHECK(told.told == 1);
}

TEST_CASE("what another thread raises too late is told there", "[raise][thread]") {
  counting told;
  thread other(told.chosen, [] {
    for (;;) {
      try {
        sleep();
      } catch (const oops&) {
        // of a fiber that has ended by it before it was awaited
      }
    }
  });
  int untold = 0;
  const std::size_t rounds = testing::scaled(20'000, 500);
  for (std::size_t round = 0; round < rounds; ++round) {
    fiber_ref brief = other.spin([] { snooze(); });
    const bool accepted = brief.raise(oops());
    try {
      brief.await();
    } catch (const oops&) {
      continue;  // it came in time
    }
    if (accepted) ++untold;
  }
  other.cancel();
  CHECK_THROWS_AS(other.await(), fiber_cancelled);
  CHECK(told.told == untold);
}

TEST_CASE("on_unhandled may wait, and is told of every failure", "[failures]") {
  std::vector<std::string> told;
  options chosen;
  chosen.on_unhandled = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      told.emplace_back(e.what());
    }
    sleep_for(1ms);
  };
  CHECK_THROWS_WITH(run(chosen,
                        [] {
                          spin([] { throw std::runtime_error("one"); });
                          spin([] { throw std::runtime_error("two"); });
                          throw std::runtime_error("the body");
                        }),
                    "the body");
  CHECK(told.empty());  // neither has begun
  CHECK_THROWS_WITH(run(chosen,
                        [] {
                          auto one = spin([] { throw std::runtime_error("one"); });
                          auto two = spin([] { throw std::runtime_error("two"); });
                          shield([] {
                            snooze();
                            snooze();
                          });
                          throw std::runtime_error("the body");
                        }),
                    "the body");
  CHECK(told == std::vector<std::string>{"one", "two"});
}
