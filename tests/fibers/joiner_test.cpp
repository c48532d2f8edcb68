// SPDX-License-Identifier: MIT
// What ends a set of callables is the program's own choice; fibers that say when they are ready.
#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::until_waiting;

namespace {

/// Enough are the first `wanted` values; failures are counted.
struct first_few {
  std::size_t quota;
  std::vector<int> values = {};
  std::vector<std::size_t> places = {};
  int failures = 0;

  bool on_value(std::size_t place, int value) {
    values.push_back(value);
    places.push_back(place);
    return values.size() == quota;
  }
  bool on_failure(std::size_t, const std::exception_ptr&) {
    ++failures;
    return false;
  }
};

int later(clock::duration span, int value) {
  sleep_for(span);
  return value;
}

}  // namespace

TEST_CASE("joiner: enough results cancel the remaining fibers", "[await]") {
  testing::on_virtual_time([] {
    int cancelled_ones = 0;
    const auto slow = [&]() -> int {
      try {
        sleep();
      } catch (const cancelled&) {
        if (++cancelled_ones == 1) return 99;  // too late to be told
        throw;
      }
      return 0;
    };
    const auto fails = []() -> int { throw oops(); };
    first_few joiner{2};
    CHECK(await_with(
        joiner, slow, [] { return later(20ms, 1); }, fails, [] { return later(10ms, 2); }, slow));
    CHECK(joiner.values == std::vector<int>{2, 1});
    CHECK(joiner.places == std::vector<std::size_t>{3, 1});
    CHECK(joiner.failures == 1);
    CHECK(cancelled_ones == 2);
  });
}

TEST_CASE("joiner without a stop condition receives every result", "[await]") {
  run([] {
    first_few joiner{5};
    std::vector<std::function<int()>> bodies(3, [] { return 7; });
    bodies.emplace_back([]() -> int { throw oops(); });
    CHECK_FALSE(await_with(joiner, bodies));
    CHECK(joiner.values.size() == 3);
    CHECK(joiner.failures == 1);
    CHECK_FALSE(await_with(joiner));
    struct counts {
      int ends = 0;
      bool on_value(std::size_t) { return ++ends == 2; }
      bool on_failure(std::size_t, const std::exception_ptr& error) {
        std::rethrow_exception(error);
      }
    };
    counts of_void;
    CHECK(await_with(of_void, [] {}, [] {}, [] { sleep(); }));
    CHECK_THROWS_AS(await_with(of_void, [] { throw oops(); }, [] { sleep(); }), oops);
    auto victim = spin([&] { await_with(of_void, [] { sleep(); }); });
    until_waiting(victim);
    victim.cancel();
    CHECK_THROWS_AS(victim.await(), fiber_cancelled);
    CHECK_FALSE(await_with(of_void, [] {
      current().cancel();
      snooze();
    }));
  });
}

TEST_CASE("joiner: a failing job does not end a limiter", "[await][semaphore]") {
  testing::on_virtual_time([] {
    struct counts_all {
      int ends = 0;
      int failures = 0;
      bool on_value(std::size_t) { return ++ends < 0; }
      bool on_failure(std::size_t, const std::exception_ptr&) { return ++failures < 0; }
    };
    semaphore limit(5);
    int active = 0;
    int peak = 0;
    const auto begin = clock::now();
    std::vector<counts_all> counts(4);
    group submitters;
    for (auto& count : counts) {
      submitters.spin([&] {
        std::vector<std::function<void()>> jobs;
        for (int i = 0; i < 25; ++i) {
          jobs.emplace_back([&, i] {
            const permit_guard guard(limit);
            peak = std::max(peak, ++active);
            sleep_for(10ms);
            --active;
            if (i % 10 == 0) throw oops();
          });
        }
        CHECK_FALSE(await_with(count, jobs));
      });
    }
    submitters.await_all();
    for (const auto& count : counts) {
      CHECK(count.ends == 22);
      CHECK(count.failures == 3);
    }
    CHECK(peak == 5);
    CHECK(clock::now() - begin >= 200ms);
    CHECK(clock::now() - begin <= 260ms);
  });
}

TEST_CASE("group::start() waits until the fiber is ready", "[group]") {
  run([] {
    std::string order;
    group fibers;
    const int port = fibers.start<int>([&](promise<int>& ready) {
      order += 'a';
      snooze();
      ready.set_value(80);
      order += 'b';
      snooze();
      order += 'c';
    });
    CHECK(port == 80);
    CHECK(order == "ab");
    fibers.start([&](promise<void>& ready) { ready.set_value(); });
    fibers.await_all();
    CHECK(order == "abc");
    int object = 0;
    int& reference = fibers.start<int&>([&](promise<int&>& ready) { ready.set_value(object); });
    CHECK(&reference == &object);
  });
}

TEST_CASE("group::start() alone throws the failure of a fiber before it is ready", "[group]") {
  run([] {
    group fibers;
    bool lives = false;
    fibers.spin([&] {
      sleep_for(1ms);
      lives = true;
    });
    CHECK_THROWS_AS(fibers.start([](promise<void>&) {
      snooze();
      throw oops();
    }),
                    oops);
    CHECK_THROWS_AS(fibers.start([](promise<void>&) {}), std::logic_error);
    CHECK_THROWS_AS(fibers.start([](promise<void>&) {
      current().cancel();
      snooze();
    }),
                    fiber_cancelled);
    fibers.await_all();
    CHECK(lives);
    CHECK(fibers.failures().empty());
    fibers.start([](promise<void>& ready) {
      ready.set_value();
      throw oops();  // afterwards: the group's failure
    });
    CHECK_THROWS_AS(fibers.await_all(), oops);
  });
}

TEST_CASE("group::start() ends a fiber that was ready when the start was interrupted", "[group]") {
  run([] {
    group fibers;
    fiber_ref starts_fiber;
    auto starts = spin([&] {
      group inner;
      inner.start<int>([&](promise<int>& ready) {
        ready.set_value(1);
        starts_fiber.cancel();  // before start() has returned
        sleep();
      });
      inner.await_all();  // throws: the value was not lost with the interruption
    });
    starts_fiber = starts;
    CHECK_THROWS_AS(starts.await(), fiber_cancelled);
    promise<int> stored;
    auto later = spin([&] {
      snooze();
      stored.set_value(6);
    });
    CHECK(fibers.start<int>([&](promise<int>& ready) { stored = std::move(ready); }) == 6);
    fibers.await_all();
  });
}

TEST_CASE("joiner receives a failure that nobody has claimed", "[await]") {
  run([] {
    first_few joiner{5};
    const auto body = [] {
      spin([] {
        try {
          sleep();
        } catch (const cancelled&) {
          throw oops();
        }
      });
      snooze();
      return 1;
    };
    CHECK_THROWS_AS(await_with(joiner, body), oops);
  });
}

TEST_CASE("group::start() ends its fiber when it is interrupted", "[group]") {
  run([] {
    group fibers;
    bool ended = false;
    CHECK_FALSE(move_on_after(1ms, [&] {
      fibers.start([&](promise<void>&) {
        try {
          sleep();
        } catch (const cancelled& error) {
          CHECK(error.reason() == std::string("its start was interrupted"));
          ended = true;
          throw;
        }
      });
    }));
    fibers.await_all();
    CHECK(ended);
  });
}
