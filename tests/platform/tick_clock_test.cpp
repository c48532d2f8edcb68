// SPDX-License-Identifier: MIT
// The clock that is extrapolated from the processor's counter, beside the real one.
#include "platform/tick_clock.hpp"

#include <algorithm>
#include <chrono>
#include <motet/motet.hpp>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "platform/ticks.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

using real = std::chrono::steady_clock;

clock::time_point read_real() {
  return real::now();
}

/// Another process may take the processor at any time, the machine's own host too: that only makes
/// what is timed later. What holds once for `trial` is not this program's doing.
template <typename F>
bool in_one_of_five(F trial) {
  for (int i = 0; i < 5; ++i) {
    if (trial()) return true;
  }
  return false;
}

/// Returns: by how much, in a good round of 20, what waits for `span` ends late.
template <typename F>
std::chrono::nanoseconds lateness(std::chrono::nanoseconds span, F wait) {
  std::vector<std::chrono::nanoseconds> late;
  for (int i = 0; i < 20; ++i) {
    const auto start = real::now();
    wait();
    late.push_back(real::now() - start - span);
  }
  std::sort(late.begin(), late.end());
  CHECK(late.front() >= 0ns);
  return late[5];
}

}  // namespace

TEST_CASE("tick_clock::now() is never early, never goes back, and is hardly ahead", "[clock]") {
  detail::tick_clock extrapolated;
  bool early = false;
  bool goes_back = false;
  clock::time_point last{};
  const bool hardly_ahead = in_one_of_five([&] {
    auto ahead = 0ns;
    const auto end = real::now() + 200ms;
    while (real::now() < end) {
      const auto lower = real::now();
      const auto reading = extrapolated.now(read_real);
      const auto upper = real::now();
      early = early || reading < lower;
      goes_back = goes_back || reading < last;
      ahead = std::max<std::chrono::nanoseconds>(ahead, reading - upper);
      last = reading;
    }
    UNSCOPED_INFO("ahead by " << ahead.count() << " ns");
    return ahead < 10us;
  });
  CHECK(hardly_ahead);
  CHECK_FALSE(early);
  CHECK_FALSE(goes_back);
}

TEST_CASE("tick_clock::now() seldom asks the real clock", "[clock]") {
  detail::tick_clock extrapolated;
  std::size_t real_readings = 0;
  const auto count_and_read = [&] {
    ++real_readings;
    return real::now();
  };
  const auto warm = real::now() + 50ms;
  while (real::now() < warm) extrapolated.now(count_and_read);
  real_readings = 0;
  std::size_t readings = 0;
  const auto end = real::now() + 100ms;
  while (real::now() < end) {
    extrapolated.now(count_and_read);
    ++readings;
  }
  INFO(real_readings << " of " << readings);
  CHECK((real_readings < readings / 2 || !detail::ticks_are_steady()));
}

TEST_CASE("read_clock_and_ticks() takes the reading that did not lose the processor", "[clock]") {
  for (int undisturbed = 0; undisturbed < 8; ++undisturbed) {
    CHECK(in_one_of_five([&] {
      int readings = 0;
      real::time_point undisturbed_reading;
      const auto read_clock = [&] {
        const auto reading = real::now();
        if (readings++ == undisturbed) return undisturbed_reading = reading;
        while (real::now() - reading < 20us) continue;
        return reading;
      };
      return detail::read_clock_and_ticks(read_clock).time == undisturbed_reading;
    }));
  }
}

TEST_CASE("measure_ticks_per_nanosecond() is within a hundredth", "[clock]") {
  CHECK(in_one_of_five([&] {
    const auto first = detail::read_clock_and_ticks(real::now);
    std::this_thread::sleep_for(20ms);
    const auto second = detail::read_clock_and_ticks(real::now);
    const double rate = static_cast<double>(second.ticks - first.ticks) /
                        static_cast<double>((second.time - first.time).count());
    const double measurement = detail::measure_ticks_per_nanosecond(real::now);
    UNSCOPED_INFO(measurement << " ticks a nanosecond, not " << rate);
    return measurement > rate * 0.99 && measurement < rate * 1.01;
  }));
}

TEST_CASE("tick_clock::now() does not trust a counter that stood still", "[clock]") {
  detail::tick_clock extrapolated;
  auto jump = 0ns;
  const auto jumping = [&] { return real::now() + jump; };
  const auto warm = real::now() + 50ms;
  while (real::now() < warm) extrapolated.read(jumping);
  jump = 1h;
  extrapolated.read(jumping);
  const auto at_least = real::now() + 1h;
  CHECK(extrapolated.now(jumping) >= at_least);
}

TEST_CASE("tick_clock::now() detects a counter that stood still between two looks at the clock",
          "[clock]") {
  if (!detail::ticks_are_steady()) return;
  const auto is_found_out = [] {
    detail::tick_clock extrapolated;
    auto jump = 0ns;
    std::size_t real_readings = 0;
    const auto jumping = [&] {
      ++real_readings;
      return real::now() + jump;
    };
    const auto warm = real::now() + 50ms;
    while (real::now() < warm) extrapolated.now(jumping);
    jump = 1h;
    real_readings = 0;
    while (real_readings == 0) extrapolated.now(jumping);
    real_readings = 0;
    for (int i = 0; i < 100; ++i) extrapolated.now(jumping);
    return real_readings == 100;
  };
  int attempts = 0;  // one may lose the processor for longer than two looks are compared
  while (++attempts < 10 && !is_found_out()) continue;
  CHECK(attempts < 10);
}

TEST_CASE("sleep_for() lasts at least its time by the real clock, also after long computing",
          "[clock]") {
  if (testing::on_sim()) return;
  run([] {
    for (int i = 0; i < 20; ++i) {
      const auto computed = real::now() + 3ms;
      while (real::now() < computed) continue;
      const auto start = real::now();
      sleep_for(2ms);
      CHECK(real::now() - start >= 2ms);
    }
  });
}

TEST_CASE("sleep_for() on an idle thread sleeps for 50 us or longer", "[clock]") {
  if (testing::on_sim() || testing::under_asan || testing::under_tsan) return;
  run([] {
    // One that is interrupted before it falls asleep finds that its time is over.
    CHECK(in_one_of_five([] { return lateness(10us, [] { sleep_for(10us); }) >= 40us; }));
  });
}

TEST_CASE("move_on_after() on an idle thread is never early, and hardly late", "[clock]") {
  if (testing::on_sim() || testing::under_asan || testing::under_tsan) return;
  run([] {
    const auto allowance = backend_name() == "io_uring" ? 100us : 300us;
    for (const auto span : {500us, 1500us, 3000us, 10'000us, 25'000us}) {
      const bool hardly_late = in_one_of_five([&] {
        const auto late =
            lateness(span, [&] { REQUIRE_FALSE(move_on_after(span, [] { sleep(); })); });
        // What the machine itself takes to wake a thread is measured beside.
        const auto machine_late = lateness(span, [&] { std::this_thread::sleep_for(span); });
        UNSCOPED_INFO(span.count() << " us was late by " << late.count() << " ns, the machine by "
                                   << machine_late.count());
        return late <= std::max<std::chrono::nanoseconds>(allowance, 2 * machine_late);
      });
      CHECK(hardly_late);
    }
  });
}
