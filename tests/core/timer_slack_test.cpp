// SPDX-License-Identifier: MIT
// How late timers may be: alone by a little, in a crowd by more.
#include "core/time/timer_slack.hpp"

#include <cstddef>
#include <motet/motet.hpp>
#include <stdexcept>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using motet::detail::timer;
using motet::detail::timer_slack;

namespace {

/// What a thread sees that sleeps until the timers of some fibers, in turn, are due.
class sleeper {
 public:
  sleeper(std::chrono::microseconds most, std::size_t fibers) : slack_(most), fibers_(fibers) {}

  /// Returns: how long the next sleep is, if the next timer is due then.
  clock::duration next(clock::duration ahead) {
    timer next;
    // No fiber is looked at, only whether it is the same.
    next.fiber = reinterpret_cast<detail::control_block*>(4096 * (1 + turn_++ % fibers_));
    next.due = now_ + ahead;
    const clock::duration slept = slack_.before(next, now_);
    now_ += slept;
    return slept;
  }
  void pause(clock::duration span) { now_ += span; }

 private:
  timer_slack slack_;
  std::size_t fibers_;
  std::size_t turn_ = 0;
  clock::time_point now_ = clock::time_point() + 1h;
};

constexpr std::size_t many = 10'000;

}  // namespace

TEST_CASE("a timer alone is late by 50 us, however often it is set", "[slack]") {
  sleeper lone(500us, 1);
  for (int i = 0; i < 1'000; ++i) REQUIRE(lone.next(10us) == 50us);
}

TEST_CASE("so are a few that take turns", "[slack]") {
  sleeper some(500us, 8);
  for (int i = 0; i < 1'000; ++i) REQUIRE(some.next(10us) == 50us);
}

TEST_CASE("so are timers of many fibers that are apart", "[slack]") {
  sleeper all(500us, many);
  for (int i = 0; i < 1'000; ++i) REQUIRE(all.next(101us) == 50us);
}

TEST_CASE("in a crowd the slack grows to what the options say, and shrinks when the crowd is over",
          "[slack]") {
  sleeper all(400us, many);
  clock::duration before = 50us;
  for (int i = 0; i < 100; ++i) {
    const clock::duration now = all.next(10us);
    REQUIRE(now >= before);
    before = now;
  }
  CHECK(before == 400us);
  CHECK(all.next(1ms) == 50us);
  CHECK(all.next(10us) == 50us);
}

TEST_CASE("a crowd that has been is none any more", "[slack]") {
  sleeper all(400us, many);
  for (int i = 0; i < 100; ++i) all.next(10us);
  all.pause(10ms);
  CHECK(all.next(10us) == 50us);
}

TEST_CASE("options.timer_slack may also be none", "[slack]") {
  sleeper all(0us, many);
  for (int i = 0; i < 100; ++i) REQUIRE(all.next(10us) == 0us);
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
