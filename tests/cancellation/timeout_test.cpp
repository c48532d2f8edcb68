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

TEST_CASE("with_timeout() returns the callable's result, of any type", "[timeout]") {
  run([] {
    int number = 1;
    int& reference = with_timeout(1s, [&]() -> int& { return number; });
    CHECK(&reference == &number);
    CHECK(*with_timeout(1s, [] { return std::make_unique<int>(3); }) == 3);
    with_timeout(1s, [] {});
  });
}

TEST_CASE("with_timeout() throws timed_out, which says where", "[timeout]") {
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

TEST_CASE("deadline can be reset, extended and queried", "[timeout]") {
  run([] {
    const auto start = clock::now();
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
    CHECK(clock::now() - start >= 100ms);
    CHECK(clock::now() - start < 300ms);
  });
}

TEST_CASE("deadline cannot be set again after it has passed", "[timeout]") {
  run([] {
    const auto start = clock::now();
    const bool returned = move_on_after(5ms, [](deadline& limit) {
      CHECK(throws_cancelled([] { sleep(); }));
      CHECK_FALSE(limit.reset(1h));
      CHECK_FALSE(limit.extend(1h));
      CHECK(limit.remaining() == 0ms);
      CHECK(throws_cancelled([] { sleep(); }));
      sleep();
    });
    CHECK_FALSE(returned);
    CHECK(clock::now() - start < 1min);
  });
}

TEST_CASE("deadline cannot be set again after it has passed without a switchpoint", "[timeout]") {
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

TEST_CASE("deadline may be moved by another fiber, not by another thread", "[timeout]") {
  run([] {
    int beats = 0;
    const bool done = move_on_after(500ms, [&](deadline& limit) {
      group fibers;
      fibers.spin([&] {
        for (; beats < 10; ++beats) {
          sleep_for(60ms);
          limit.reset(500ms);
        }
      });
      fibers.await_all();
      bool refused = false;
      std::thread remote([&] {
        try {
          limit.reset(1s);
        } catch (const std::logic_error&) {
          refused = true;
        }
      });
      remote.join();
      CHECK(refused);
    });
    CHECK(done);
    CHECK(beats == 10);
  });
}

TEST_CASE("move_on_after() returns its default when the time is up", "[timeout]") {
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

TEST_CASE("deadline: the outer of two at the same instant wins", "[timeout]") {
  run([] {
    bool inner_answered = false;
    const bool outer = move_on_after(20ms, [&](deadline& limit) {
      move_on_after(limit.remaining() - 1ms, [&](deadline& inner) {
        inner.extend(limit.remaining() - inner.remaining());
        limit.extend(inner.remaining() - limit.remaining());
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

TEST_CASE("deadline: a cancellation takes precedence over a passed deadline", "[timeout]") {
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

TEST_CASE("deadline: nested scopes that end in time leave nothing behind", "[timeout]") {
  run([] {
    const auto rounds = testing::scaled(20'000, 4'000);
    std::uint32_t seed = 12345;
    const auto nest = [&](int depth) {
      seed = seed * 1664525 + 1013904223;
      return std::chrono::microseconds(static_cast<int>(seed >> 8) % depth);
    };
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto length = 50us + nest(50);
      bool inner_ended = false;
      bool inner_returned = false;
      const bool outer_returned = move_on_after(length - 50us + nest(100), [&] {
        inner_returned = move_on_after(length - 50us + nest(100), [&] { sleep_for(length); });
        inner_ended = true;
        // Here only the outer one can speak.
        sleep_for(nest(20));
      });
      REQUIRE((inner_ended || !inner_returned));
      REQUIRE((inner_ended || !outer_returned));
      REQUIRE_FALSE(throws_cancelled([] { snooze(); }));
    }
    REQUIRE_FALSE(throws_cancelled([] { sleep_for(1ms); }));
    suspend();
  });
}

TEST_CASE("time_left() is the time until the fiber's nearest deadline", "[timeout]") {
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

TEST_CASE("time_left() ignores a stop that may be requested, but not a requested one",
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

TEST_CASE("nearest_deadline() is an instant that with_deadline() accepts", "[timeout]") {
  testing::on_virtual_time([] {
    CHECK_FALSE(nearest_deadline());
    const clock::time_point start = clock::now();
    CHECK(with_deadline(start + 1s, [] { return 3; }) == 3);
    CHECK_THROWS_AS(with_deadline(start + 20ms,
                                  [&] {
                                    CHECK(nearest_deadline() == start + 20ms);
                                    with_timeout(
                                        10ms, [&] { CHECK(nearest_deadline() == start + 10ms); });
                                    shield([] { CHECK_FALSE(nearest_deadline()); });
                                    sleep();
                                  }),
                    timed_out);
    CHECK(clock::now() == start + 20ms);
    auto child = spin([limit = start + 50ms] { with_deadline(limit, [] { sleep(); }); });
    CHECK_THROWS_AS(child.await(), timed_out);
    CHECK(clock::now() == start + 50ms);
  });
  std::thread([] { CHECK_FALSE(nearest_deadline()); }).join();
}

TEST_CASE("deadline: a past one ends its call at the first wait", "[timeout]") {
  run([] {
    bool started = false;
    for (const auto end : {clock::now(), clock::now() - 1h, clock::time_point::min()}) {
      started = false;
      CHECK_THROWS_AS(with_deadline(end,
                                    [&](deadline& limit) {
                                      started = true;
                                      CHECK(time_left() == 0ms);
                                      const auto nearest = nearest_deadline();
                                      CHECK(nearest <= clock::now());
                                      CHECK(limit.remaining() == 0ms);
                                      CHECK_FALSE(limit.extend(1h));
                                      sleep();
                                    }),
                      timed_out);
      CHECK(started);
    }
    CHECK(with_deadline(clock::time_point::max(), [](deadline& limit) {
      snooze();
      return limit.extend(1h) && time_left() > 1h;
    }));
  });
}

TEST_CASE("deadline holds for a fiber that visits another thread", "[timeout]") {
  run([] {
    testing::idle_thread worker;
    const auto start = clock::now();
    CHECK_THROWS_AS(with_deadline(start + 20ms,
                                  [&] {
                                    const portal away(worker.thread);
                                    CHECK(nearest_deadline().has_value());
                                    sleep();
                                  }),
                    timed_out);
    if (!testing::on_sim()) CHECK(clock::now() >= start + 20ms);  // each thread has its time there
    CHECK(with_deadline(clock::time_point::max(), [&] {
      const portal away(worker.thread);
      snooze();
      return true;
    }));
  });
}

TEST_CASE("deadline::caused() tells whether it ended the call", "[timeout]") {
  run([] {
    bool outer_caused = true, inner_caused = false;
    with_timeout(1h, [&](deadline& outer) {
      move_on_after(1ms, [&](deadline& inner) {
        try {
          sleep();
        } catch (const cancelled& error) {
          outer_caused = outer.caused(error);
          inner_caused = inner.caused(error);
        }
      });
    });
    CHECK_FALSE(outer_caused);
    CHECK(inner_caused);
  });
}
