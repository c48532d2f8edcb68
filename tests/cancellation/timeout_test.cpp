// SPDX-License-Identifier: MIT
// Calls with a time limit: what they return and throw, and deadlines that are moved.
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <stop_token>
#include <string>
#include <thread>

#include "catch.hpp"
#include "compute.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::throws_cancelled;

TEST_CASE("with_timeout gives what its callable returns, of any kind", "[timeout]") {
  run([] {
    int number = 1;
    int& same = with_timeout(1s, [&]() -> int& { return number; });
    CHECK(&same == &number);
    CHECK(*with_timeout(1s, [] { return std::make_unique<int>(3); }) == 3);
    with_timeout(1s, [] {});
  });
}

TEST_CASE("with_timeout throws timed_out, which says where", "[timeout]") {
  run([] {
    try {
      with_timeout(5ms, [] { sleep(); });
      FAIL("it has returned");
    } catch (const timed_out& late) {
      CHECK(late.code() == std::errc::timed_out);
      CHECK(std::string(late.what()).find("timeout_test.cpp") != std::string::npos);
    }
  });
}

TEST_CASE("a deadline can be reset, extended and asked", "[timeout]") {
  run([] {
    const auto begun = clock::now();
    CHECK_FALSE(move_on_after(50ms, [](deadline& limit) {
      CHECK(limit.remaining() <= 50ms);
      CHECK(limit.remaining() > 0ms);
      sleep_for(30ms);
      CHECK(limit.reset(50ms));
      sleep_for(30ms);
      CHECK(limit.extend(20ms));
      CHECK(limit.remaining() > 0ms);
      sleep();
    }));
    CHECK(clock::now() - begun >= 100ms);
    CHECK(clock::now() - begun < 300ms);
  });
}

TEST_CASE("a deadline that has passed cannot be set again", "[timeout]") {
  run([] {
    const auto begun = clock::now();
    const bool returned = move_on_after(5ms, [](deadline& limit) {
      CHECK(throws_cancelled([] { sleep(); }));
      CHECK_FALSE(limit.reset(1h));
      CHECK_FALSE(limit.extend(1h));
      CHECK(limit.remaining() == 0ms);
      CHECK(throws_cancelled([] { sleep(); }));
      sleep();
    });
    CHECK_FALSE(returned);
    CHECK(clock::now() - begun < 1min);
  });
}

TEST_CASE("a deadline that has passed unseen cannot be set again", "[timeout]") {
  if (testing::on_sim()) return;  // virtual time stands while a fiber computes
  run([] {
    const auto passes = [](auto set_again) {
      bool refused = false;
      const bool returned = move_on_after(1ms, [&](deadline& limit) {
        const auto end = std::chrono::steady_clock::now() + 2ms;
        while (std::chrono::steady_clock::now() < end) continue;  // no poll has seen it
        refused = !set_again(limit);
        CHECK(limit.remaining() == 0ms);
        sleep_for(1ms);
      });
      CHECK(refused);
      CHECK_FALSE(returned);
    };
    passes([](deadline& limit) { return limit.reset(1h); });
    passes([](deadline& limit) { return limit.extend(1h); });
  });
}

TEST_CASE("a deadline may be moved by another fiber, not by another thread", "[timeout]") {
  run([] {
    int beats = 0;
    const bool done = move_on_after(500ms, [&](deadline& limit) {
      group both;
      both.spin([&] {
        for (; beats < 10; ++beats) {
          sleep_for(60ms);
          limit.reset(500ms);
        }
      });
      both.await_all();
      bool refused = false;
      std::thread other([&] {
        try {
          limit.reset(1s);
        } catch (const std::logic_error&) {
          refused = true;
        }
      });
      other.join();
      CHECK(refused);
    });
    CHECK(done);
    CHECK(beats == 10);
  });
}

TEST_CASE("a value stands in for a call whose time was up", "[timeout]") {
  run([] {
    CHECK(move_on_after(
              5ms,
              [] {
                sleep();
                return 1;
              },
              2) == 2);
    CHECK(move_on_after(5ms, [] { return 1; }, 2) == 1);
    const std::string word = move_on_after(
        5ms,
        [] {
          sleep();
          return std::string("in time");
        },
        "late");
    CHECK(word == "late");
  });
}

TEST_CASE("of two deadlines at one instant the outer speaks", "[timeout]") {
  run([] {
    bool inner_answered = false;
    const bool outer = move_on_after(20ms, [&](deadline& limit) {
      move_on_after(limit.remaining() - 1ms, [&](deadline& same) {
        same.extend(limit.remaining() - same.remaining());
        limit.extend(same.remaining() - limit.remaining());
        snooze();
        const auto end = clock::now() + limit.remaining() + 1ms;
        testing::compute_until(end);  // both are due when somebody looks
        sleep();
      });
      inner_answered = true;
    });
    CHECK_FALSE(outer);
    CHECK_FALSE(inner_answered);
  });
}

TEST_CASE("a cancellation speaks before a deadline that has passed", "[timeout]") {
  run([] {
    auto worker = spin([] {
      move_on_after(0ms, [] {
        current().cancel("first");
        sleep();
      });
      FAIL("the deadline has spoken");
    });
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
  });
}

TEST_CASE("nested deadlines that end as their bodies do leave nothing behind", "[timeout]") {
  run([] {
    const auto rounds = testing::scaled(20'000, 4'000);
    std::uint32_t seed = 12345;
    const auto below = [&](int most) {
      seed = seed * 1664525 + 1013904223;
      return std::chrono::microseconds(static_cast<int>(seed >> 8) % most);
    };
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto length = 50us + below(50);
      bool inner_ended = false;
      bool inner_returned = false;
      const bool outer_returned = move_on_after(length - 50us + below(100), [&] {
        inner_returned = move_on_after(length - 50us + below(100), [&] { sleep_for(length); });
        inner_ended = true;
        // Here only the outer one can speak.
        sleep_for(below(20));
      });
      REQUIRE((inner_ended || !inner_returned));
      REQUIRE((inner_ended || !outer_returned));
      REQUIRE_FALSE(throws_cancelled([] { snooze(); }));
    }
    REQUIRE_FALSE(throws_cancelled([] { sleep_for(1ms); }));
    suspend();
  });
}

TEST_CASE("a fiber knows how much time is left to it", "[timeout]") {
  testing::on_virtual_time([] {
    CHECK_FALSE(time_left());
    with_timeout(100ms, [] {
      CHECK(time_left() == 100ms);
      sleep_for(30ms);
      CHECK(time_left() == 70ms);
      with_timeout(1s, [] { CHECK(time_left() == 70ms); });
      move_on_after(20ms, [] { CHECK(time_left() == 20ms); });
      shield([] {
        CHECK_FALSE(time_left());
        with_timeout(5s, [] { CHECK(time_left() == 5s); });
        sleep_for(100ms);
      });
      CHECK(time_left() == 0ms);
      throws_cancelled([] { snooze(); });
      CHECK(time_left() == 0ms);
    });
  });
}

TEST_CASE("a stop that may be requested is no limit of time, one that was requested is",
          "[timeout]") {
  run([] {
    std::stop_source source;
    move_on_when_stopped(source.get_token(), [&] {
      CHECK_FALSE(time_left());
      source.request_stop();
      CHECK(time_left() == 0ms);
    });
    CHECK_FALSE(time_left());
  });
  std::thread([] { CHECK_FALSE(time_left()); }).join();
}

TEST_CASE("a deadline is a point of time, which can be handed on", "[timeout]") {
  testing::on_virtual_time([] {
    CHECK_FALSE(nearest_deadline());
    const clock::time_point begun = clock::now();
    CHECK(with_deadline(begun + 1s, [] { return 3; }) == 3);
    CHECK_THROWS_AS(with_deadline(begun + 20ms,
                                  [&] {
                                    CHECK(nearest_deadline() == begun + 20ms);
                                    with_timeout(
                                        10ms, [&] { CHECK(nearest_deadline() == begun + 10ms); });
                                    shield([] { CHECK_FALSE(nearest_deadline()); });
                                    sleep();
                                  }),
                    timed_out);
    CHECK(clock::now() == begun + 20ms);
    auto child = spin([until = begun + 50ms] { with_deadline(until, [] { sleep(); }); });
    CHECK_THROWS_AS(child.await(), timed_out);
    CHECK(clock::now() == begun + 50ms);
  });
  std::thread([] { CHECK_FALSE(nearest_deadline()); }).join();
}

TEST_CASE("a deadline that is past ends its call at the first wait", "[timeout]") {
  run([] {
    bool begun = false;
    for (const auto end : {clock::now(), clock::now() - 1h, clock::time_point::min()}) {
      begun = false;
      CHECK_THROWS_AS(with_deadline(end,
                                    [&](deadline& limit) {
                                      begun = true;
                                      CHECK(time_left() == 0ms);
                                      const auto nearest = nearest_deadline();
                                      CHECK(nearest <= clock::now());
                                      CHECK(limit.remaining() == 0ms);
                                      CHECK_FALSE(limit.extend(1h));
                                      sleep();
                                    }),
                      timed_out);
      CHECK(begun);
    }
    CHECK(with_deadline(clock::time_point::max(), [](deadline& limit) {
      snooze();
      return limit.extend(1h) && time_left() > 1h;
    }));
  });
}

TEST_CASE("a deadline is kept by a fiber that goes elsewhere", "[timeout]") {
  run([] {
    testing::idle_thread there;
    const auto begun = clock::now();
    CHECK_THROWS_AS(with_deadline(begun + 20ms,
                                  [&] {
                                    const portal away(there.itself);
                                    CHECK(nearest_deadline().has_value());
                                    sleep();
                                  }),
                    timed_out);
    if (!testing::on_sim()) CHECK(clock::now() >= begun + 20ms);  // each thread has its time there
    CHECK(with_deadline(clock::time_point::max(), [&] {
      const portal away(there.itself);
      snooze();
      return true;
    }));
  });
}

TEST_CASE("a deadline can be asked whether it was the cause", "[timeout]") {
  run([] {
    bool outer_caused = true, inner_caused = false;
    with_timeout(1h, [&](deadline& outer) {
      move_on_after(1ms, [&](deadline& inner) {
        try {
          sleep();
        } catch (const cancelled& told) {
          outer_caused = outer.caused(told);
          inner_caused = inner.caused(told);
        }
      });
    });
    CHECK_FALSE(outer_caused);
    CHECK(inner_caused);
  });
}
