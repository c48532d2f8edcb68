// SPDX-License-Identifier: MIT
// retry().
#include <chrono>
#include <cstddef>
#include <exception>
#include <motet/motet.hpp>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::until_waiting;

TEST_CASE("retry() repeats a call with growing delays until it returns", "[retry]") {
  testing::on_virtual_time([] {
    retry_schedule schedule;
    schedule.delay = 10ms;
    schedule.longest_delay = 25ms;
    schedule.jitter = 0;
    std::vector<clock::duration> starts;
    const auto start = clock::now();
    int calls = 0;
    CHECK(retry(schedule, [&] {
            starts.push_back(clock::now() - start);
            if (++calls < 5) throw oops();
            return calls;
          }) == 5);
    REQUIRE(starts.size() == 5);
    const clock::duration expected_starts[] = {0ms, 10ms, 30ms, 55ms, 80ms};
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(starts[i] >= expected_starts[i]);
      CHECK(starts[i] < expected_starts[i] + 2ms);
    }
    schedule.jitter = 1;
    schedule.attempts = 1'000;
    schedule.longest_delay = 1ms;
    calls = 0;
    const auto again = clock::now();
    retry(schedule, [&] {
      if (++calls < 1'000) throw oops();
    });
    CHECK(clock::now() - again > 300ms);
    CHECK(clock::now() - again < 700ms);
  });
}

TEST_CASE("retry() does not repeat a call that would only fail again", "[retry]") {
  testing::on_virtual_time([] {
    retry_schedule schedule;
    schedule.attempts = 3;
    int calls = 0;
    CHECK_THROWS_AS(retry(schedule,
                          [&] {
                            ++calls;
                            throw oops();
                          }),
                    oops);
    CHECK(calls == 3);
    calls = 0;
    CHECK_THROWS_AS(retry(schedule,
                          [&] {
                            ++calls;
                            throw std::invalid_argument("no");
                          }),
                    std::invalid_argument);
    CHECK(calls == 1);
    calls = 0;
    schedule.only_if = [](const std::exception_ptr& failure) { return failure != nullptr; };
    CHECK_THROWS_AS(retry(schedule,
                          [&] {
                            ++calls;
                            throw std::invalid_argument("no");
                          }),
                    std::invalid_argument);
    CHECK(calls == 3);
    calls = 0;
    schedule.attempts = 1'000'000;
    CHECK_FALSE(move_on_after(1s, [&] {
      retry(schedule, [&] {
        ++calls;
        throw oops();
      });
    }));
    CHECK(calls >= 3);
    calls = 0;
    auto victim = spin([&] {
      retry(schedule, [&] {
        ++calls;
        sleep();
      });
    });
    until_waiting(victim);
    victim.cancel();
    CHECK_THROWS_AS(victim.await(), fiber_cancelled);
    CHECK(calls == 1);
    int stored = 3;
    int& reference = retry(schedule, [&]() -> int& { return stored; });
    CHECK(&reference == &stored);
    for (auto bad : {retry_schedule{.attempts = 0}, retry_schedule{.delay = -1ms},
                     retry_schedule{.longest_delay = -1ms}, retry_schedule{.jitter = 1.5}}) {
      CHECK_THROWS_AS(retry(bad, [] {}), std::invalid_argument);
    }
  });
}
