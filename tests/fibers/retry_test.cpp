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

TEST_CASE("a call is made again until it returns, later and later", "[retry]") {
  testing::on_virtual_time([] {
    retry_schedule how;
    how.delay = 10ms;
    how.longest_delay = 25ms;
    how.jitter = 0;
    std::vector<clock::duration> begun;
    const auto start = clock::now();
    int calls = 0;
    CHECK(retry(how, [&] {
            begun.push_back(clock::now() - start);
            if (++calls < 5) throw oops();
            return calls;
          }) == 5);
    REQUIRE(begun.size() == 5);
    const clock::duration expected[] = {0ms, 10ms, 30ms, 55ms, 80ms};
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(begun[i] >= expected[i]);
      CHECK(begun[i] < expected[i] + 2ms);
    }
    how.jitter = 1;
    how.attempts = 1'000;
    how.longest_delay = 1ms;
    calls = 0;
    const auto again = clock::now();
    retry(how, [&] {
      if (++calls < 1'000) throw oops();
    });
    CHECK(clock::now() - again > 300ms);
    CHECK(clock::now() - again < 700ms);
  });
}

TEST_CASE("what would only fail again is not called again", "[retry]") {
  testing::on_virtual_time([] {
    retry_schedule how;
    how.attempts = 3;
    int calls = 0;
    CHECK_THROWS_AS(retry(how,
                          [&] {
                            ++calls;
                            throw oops();
                          }),
                    oops);
    CHECK(calls == 3);
    calls = 0;
    CHECK_THROWS_AS(retry(how,
                          [&] {
                            ++calls;
                            throw std::invalid_argument("no");
                          }),
                    std::invalid_argument);
    CHECK(calls == 1);
    calls = 0;
    how.only_if = [](const std::exception_ptr& failure) { return failure != nullptr; };
    CHECK_THROWS_AS(retry(how,
                          [&] {
                            ++calls;
                            throw std::invalid_argument("no");
                          }),
                    std::invalid_argument);
    CHECK(calls == 3);
    calls = 0;
    how.attempts = 1'000'000;
    CHECK_FALSE(move_on_after(1s, [&] {
      retry(how, [&] {
        ++calls;
        throw oops();
      });
    }));
    CHECK(calls >= 3);
    calls = 0;
    auto gone = spin([&] {
      retry(how, [&] {
        ++calls;
        sleep();
      });
    });
    until_waiting(gone);
    gone.cancel();
    CHECK_THROWS_AS(gone.await(), fiber_cancelled);
    CHECK(calls == 1);
    int kept = 3;
    int& same = retry(how, [&]() -> int& { return kept; });
    CHECK(&same == &kept);
    for (auto bad : {retry_schedule{.attempts = 0}, retry_schedule{.delay = -1ms},
                     retry_schedule{.longest_delay = -1ms}, retry_schedule{.jitter = 1.5}}) {
      CHECK_THROWS_AS(retry(bad, [] {}), std::invalid_argument);
    }
  });
}
