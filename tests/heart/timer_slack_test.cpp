// SPDX-License-Identifier: MIT
// How late timers may be: alone by a little, in a crowd by more.
#include "heart/time/timer_slack.hpp"

#include <array>
#include <motet/motet.hpp>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using motet::detail::timer;
using motet::detail::timer_slack;

namespace {

/// Timers of different fibers. No fiber is looked at, only whether it is the same.
struct of_fibers {
  of_fibers() {
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].fiber = reinterpret_cast<detail::control_block*>(4096 * (i + 1));
    }
  }
  const timer& next() { return all[at++ % all.size()]; }

  std::array<timer, 3> all;
  std::size_t at = 0;
};

}  // namespace

TEST_CASE("a timer alone is late by 50 us, however often it is set", "[slack]") {
  timer_slack slack(500us);
  timer lone;
  for (int i = 0; i < 1'000; ++i) REQUIRE(slack.before(lone, 10us) == 50us);
}

TEST_CASE("timers of several fibers that are apart are late by 50 us", "[slack]") {
  timer_slack slack(500us);
  of_fibers some;
  for (int i = 0; i < 1'000; ++i) REQUIRE(slack.before(some.next(), 101us) == 50us);
}

TEST_CASE("in a crowd the slack grows to what the options say, and shrinks when the crowd is over",
          "[slack]") {
  timer_slack slack(400us);
  of_fibers some;
  clock::duration before = 50us;
  for (int i = 0; i < 100; ++i) {
    const clock::duration now = slack.before(some.next(), 10us);
    REQUIRE(now >= before);
    before = now;
  }
  CHECK(before == 400us);
  CHECK(slack.before(some.next(), 1ms) == 50us);
  CHECK(slack.before(some.next(), 10us) == 50us);
}

TEST_CASE("options.timer_slack may also be none", "[slack]") {
  timer_slack slack(0us);
  of_fibers some;
  for (int i = 0; i < 100; ++i) REQUIRE(slack.before(some.next(), 10us) == 0us);
  options how;
  for (const auto wrong : {-1us, 100'001us}) {
    how.timer_slack = wrong;
    CHECK_THROWS_AS(run(how, [] {}), std::invalid_argument);
  }
}

TEST_CASE("no sleep of a crowd is too short, and none lasts for ever", "[slack]") {
  run([] {
    const auto count = testing::scaled(20'000, 2'000);
    group all;
    std::size_t early = 0;
    for (std::size_t i = 0; i < count; ++i) {
      all.spin([i, &early] {
        const auto due = clock::now() + std::chrono::microseconds(i * 7919 % 200'000);
        sleep_until(due);
        if (clock::now() < due) ++early;
      });
    }
    all.await_all();
    CHECK(early == 0);
  });
}
