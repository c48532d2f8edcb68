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
  sleeper(std::chrono::microseconds limit, std::size_t fibers) : slack_(limit), fibers_(fibers) {}

  /// Returns: how long the next sleep is, if the next timer is due then.
  clock::duration next(clock::duration ahead) {
    timer next;
    // No fiber is looked at, only whether it is the same.
    next.fiber = reinterpret_cast<detail::control_block*>(4096 * (1 + turn_++ % fibers_));
    next.due = instant_ + ahead;
    const clock::duration slept = slack_.before(next, instant_);
    instant_ += slept;
    return slept;
  }
  void pause(clock::duration span) { instant_ += span; }

 private:
  timer_slack slack_;
  std::size_t fibers_;
  std::size_t turn_ = 0;
  clock::time_point instant_ = clock::time_point() + 1h;
};

constexpr std::size_t many = 10'000;

}  // namespace

TEST_CASE("timer_slack: a single timer is at most 50 us late, however often it is set", "[slack]") {
  sleeper lone(500us, 1);
  for (int i = 0; i < 1'000; ++i) REQUIRE(lone.next(10us) == 50us);
}

TEST_CASE("timer_slack: a few alternating timers are at most 50 us late", "[slack]") {
  sleeper few(500us, 8);
  for (int i = 0; i < 1'000; ++i) REQUIRE(few.next(10us) == 50us);
}

TEST_CASE("timer_slack: timers of many fibers that are far apart are at most 50 us late",
          "[slack]") {
  sleeper crowd(500us, many);
  for (int i = 0; i < 1'000; ++i) REQUIRE(crowd.next(101us) == 50us);
}

TEST_CASE("timer_slack grows in a crowd up to the option, and shrinks afterwards", "[slack]") {
  sleeper crowd(400us, many);
  clock::duration previous = 50us;
  for (int i = 0; i < 100; ++i) {
    const clock::duration slack = crowd.next(10us);
    REQUIRE(slack >= previous);
    previous = slack;
  }
  CHECK(previous == 400us);
  CHECK(crowd.next(1ms) == 50us);
  CHECK(crowd.next(10us) == 50us);
}

TEST_CASE("timer_slack ignores a crowd that has passed", "[slack]") {
  sleeper crowd(400us, many);
  for (int i = 0; i < 100; ++i) crowd.next(10us);
  crowd.pause(10ms);
  CHECK(crowd.next(10us) == 50us);
}

TEST_CASE("options::timer_slack may be zero", "[slack]") {
  sleeper crowd(0us, many);
  for (int i = 0; i < 100; ++i) REQUIRE(crowd.next(10us) == 0us);
  options config;
  for (const auto wrong : {-1us, 100'001us}) {
    config.timer_slack = wrong;
    CHECK_THROWS_AS(run(config, [] {}), std::invalid_argument);
  }
}

TEST_CASE("timer_slack: no sleep of a crowd is too short, and none lasts for ever", "[slack]") {
  run([] {
    const auto count = testing::scaled(20'000, 2'000);
    group members;
    std::size_t early = 0;
    for (std::size_t i = 0; i < count; ++i) {
      members.spin([i, &early] {
        const auto due = clock::now() + std::chrono::microseconds(i * 7919 % 200'000);
        sleep_until(due);
        if (clock::now() < due) ++early;
      });
    }
    members.await_all();
    CHECK(early == 0);
  });
}
