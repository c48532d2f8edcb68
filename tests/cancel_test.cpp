// SPDX-License-Identifier: MIT
// Interruptions that last, what holds them back, and for how long.
#include <array>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "compute.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// Calls `f` when it is destroyed.
template <typename F>
struct at_end {
  F f;
  ~at_end() { f(); }
};
template <typename F>
at_end(F) -> at_end<F>;

template <typename F>
bool throws_cancelled(F f) {
  try {
    f();
  } catch (const cancelled&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a cancelled fiber is told again at every further switchpoint", "[cancel]") {
  run([] {
    int told = 0;
    auto stubborn = spin([&] {
      for (int i = 0; i < 5; ++i) told += throws_cancelled([] { sleep_for(1h); }) ? 1 : 0;
      told += throws_cancelled([] { snooze(); }) ? 1 : 0;
      told += throws_cancelled([] { suspend<int>(); }) ? 1 : 0;
      told += throws_cancelled([] { checkpoint(); }) ? 1 : 0;
      told += throws_cancelled([] { spin([] {}).await(); }) ? 1 : 0;
    });
    snooze();
    stubborn.cancel();
    stubborn.await();
    CHECK(told == 9);
  });
}

TEST_CASE("a loop that swallows its cancellation starves nobody", "[cancel]") {
  options chosen;
  chosen.on_notice = [](std::string_view) {};
  run(chosen, [] {
    bool over = false;
    auto stubborn = spin([&] {
      while (!over) {
        try {
          sleep();
        } catch (const cancelled&) {
        }
      }
    });
    snooze();
    stubborn.cancel();
    int turns = 0;
    while (turns < 1'000) {
      snooze();
      ++turns;
    }
    over = true;
    stubborn.await();
    CHECK(turns == 1'000);
  });
}

TEST_CASE("a loop that ignores the errors of a cancelled read starves nobody", "[cancel]") {
  run([] {
    testing::descriptor_pair ends = testing::make_socket_pair();
    bool over = false;
    auto stubborn = spin([&] {
      std::array<std::byte, 1> byte{};
      while (!over) {
        std::error_code error;
        io::recv(ends.first(), byte, 0, error);
      }
    });
    snooze();
    stubborn.cancel();
    for (int i = 0; i < 1'000; ++i) snooze();
    over = true;
    stubborn.await();
  });
}

TEST_CASE("what swallows a hundred times in a row is reported once, with its place", "[cancel]") {
  std::vector<std::string> notices;
  options chosen;
  chosen.on_notice = [&](std::string_view line) { notices.emplace_back(line); };
  run(chosen, [&] {
    auto stubborn = spin({.name = "stubborn"}, [] {
      for (int i = 0; i < 500; ++i) throws_cancelled([] { sleep(); });
    });
    snooze();
    stubborn.cancel();
    stubborn.await();
  });
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("stubborn") != std::string::npos);
  CHECK(notices[0].find("cancel_test.cpp") != std::string::npos);
}

TEST_CASE("cancelled tells where it was asked for", "[cancel]") {
  run([] {
    call_site seen;
    auto sleeper = spin([&] {
      try {
        sleep();
      } catch (const cancelled& how) {
        seen = how.asked_at();
        throw;
      }
    });
    snooze();
    const unsigned line = __LINE__ + 1;
    sleeper.cancel();
    CHECK_THROWS_AS(sleeper.await(), fiber_cancelled);
    CHECK(seen.line == line);
    CHECK(std::string(seen.file).find("cancel_test.cpp") != std::string::npos);
  });
}

TEST_CASE("a scope that has ended ends every further wait in it, and none behind it", "[scope]") {
  run([] {
    int told = 0;
    const bool returned = move_on_after(10ms, [&] {
      for (int i = 0; i < 3; ++i) told += throws_cancelled([] { sleep(); }) ? 1 : 0;
    });
    CHECK(returned);  // what swallows it and returns has returned
    CHECK(told == 3);
    CHECK_FALSE(throws_cancelled([] { sleep_for(1ms); }));
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("a handler of its own interruption may wait, within its grace", "[grace]") {
  run([] {
    bool cleaned_up = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(20ms);
        snooze();
        cleaned_up = true;
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(cleaned_up);
  });
}

TEST_CASE("a handler that waits too long is interrupted when its grace is over", "[grace]") {
  options chosen;
  chosen.handler_grace = 50ms;
  run(chosen, [] {
    clock::duration waited{};
    int thrown = 0;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        const auto begun = clock::now();
        try {
          sleep();
        } catch (const cancelled&) {
          ++thrown;
        }
        waited = clock::now() - begun;
        if (throws_cancelled([] { sleep(); })) ++thrown;
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(thrown == 2);
    CHECK(waited >= 49ms);
    CHECK(waited < 150ms);
  });
}

TEST_CASE("no grace at all is an option", "[grace]") {
  options chosen;
  chosen.handler_grace = 0ms;
  run(chosen, [] {
    bool again = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        again = throws_cancelled([] { sleep_for(1ms); });
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(again);
  });
}

TEST_CASE("the grace holds within handlers of other exceptions inside the handler", "[grace]") {
  run([] {
    bool cleaned_up = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        try {
          throw std::runtime_error("the clean-up failed");
        } catch (const std::exception&) {
          sleep_for(1ms);
          cleaned_up = true;
        }
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(cleaned_up);
  });
}

TEST_CASE("another interruption is thrown in a handler of the first", "[grace]") {
  run([] {
    bool outer_spoke = false;
    const bool returned = move_on_after(40ms, [&] {
      move_on_after(10ms, [&] {
        try {
          sleep();
        } catch (const cancelled&) {
          outer_spoke = throws_cancelled([] { sleep(); });
          throw;
        }
      });
      sleep();
    });
    CHECK_FALSE(returned);
    CHECK(outer_spoke);
  });
}

TEST_CASE("a time limit works in a handler of a cancellation", "[grace]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        limited = !move_on_after(10ms, [] { sleep(); });
        throw;
      }
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("a time limit works in a handler, though an older one inside has passed", "[grace]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      move_on_after(5ms, [&] {
        try {
          shield([] { sleep_for(20ms); });  // both have come when this is over
          sleep();
        } catch (const cancelled&) {
          limited = !move_on_after(10ms, [] { sleep(); });
          throw;
        }
      });
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("what spin throws into a cancelled fiber counts as having been told", "[grace]") {
  run([] {
    bool waited = false;
    auto worker = spin([&] {
      current().cancel();
      try {
        spin([] {});
      } catch (const cancelled&) {
        sleep_for(1ms);
        waited = true;
      }
    });
    worker.await();
    CHECK(waited);
  });
}

TEST_CASE("a time limit works in a destructor that runs while its fiber unwinds", "[unwinding]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      const at_end cleaning{[&] { limited = !move_on_after(10ms, [] { sleep(); }); }};
      sleep();
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("nothing is thrown under a shield, and at the first switchpoint behind it", "[shield]") {
  run([] {
    bool finished = false;
    bool behind = false;
    auto worker = spin([&] {
      const int kept = shield([&] {
        sleep_for(20ms);
        snooze();
        finished = true;
        return 7;
      });
      CHECK(kept == 7);
      behind = throws_cancelled([] { snooze(); });
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(finished);
    CHECK(behind);
  });
}

TEST_CASE("of nested shields only the outermost lets interruptions in", "[shield]") {
  run([] {
    std::vector<int> reached;
    auto worker = spin([&] {
      shield([&] {
        shield([&] {
          sleep_for(5ms);
          reached.push_back(1);
        });
        sleep_for(5ms);
        reached.push_back(2);
      });
      sleep_for(5ms);
      reached.push_back(3);
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(reached == std::vector{1, 2});
  });
}

TEST_CASE("what is raised, what fails and what times out all wait outside a shield", "[shield]") {
  run([] {
    std::vector<std::string> told;
    auto worker = spin([&] {
      const bool in_time = move_on_after(5ms, [&] {
        shield([&] {
          spin([] { throw std::runtime_error("a child"); });
          sleep_for(20ms);
          told.emplace_back("nothing");
        });
        for (int i = 0; i < 2; ++i) {
          try {
            snooze();
          } catch (const std::exception& e) {
            told.emplace_back(e.what());
          }
        }
        sleep();
      });
      if (!in_time) told.emplace_back("late");
    });
    snooze();
    snooze();
    worker.raise(std::logic_error("raised"));
    worker.await();
    CHECK(told == std::vector<std::string>{"nothing", "raised", "a child", "late"});
  });
}

TEST_CASE("a time limit inside a shield ends what is inside", "[shield]") {
  run([] {
    bool limited = false;
    auto worker = spin([&] {
      shield([&] {
        try {
          with_timeout(10ms, [] { sleep(); });
        } catch (const timed_out&) {
          limited = true;
        }
      });
      sleep();
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(limited);
  });
}

TEST_CASE("a shield is entered and left in a destructor on a normal exit", "[shield]") {
  run([] {
    bool waited = false;
    auto worker = spin([&] {
      {
        const at_end closing{[&] {
          shield([] { sleep_for(1ms); });
          waited = true;
        }};
        current().cancel();
      }
    });
    worker.await();
    CHECK(waited);
  });
}

TEST_CASE("a cancelled fiber can spin under a shield, not outside", "[shield]") {
  run([] {
    bool inside = false;
    bool outside = false;
    auto worker = spin([&] {
      current().cancel();
      shield([&] { spin([&] { inside = true; }).await(); });
      outside = throws_cancelled([] { spin([] {}); });
    });
    worker.await();
    CHECK(inside);
    CHECK(outside);
  });
}

TEST_CASE("terminate asks, and insists in a shield when its grace is over", "[terminate]") {
  run([] {
    bool finished = false;
    auto worker = spin([&] {
      shield([&] {
        sleep();
        finished = true;
      });
    });
    snooze();
    const auto begun = clock::now();
    CHECK(worker.terminate(30ms) == cancel_result::accepted);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK_FALSE(finished);
    CHECK(clock::now() - begun >= 30ms);
    CHECK(clock::now() - begun < 200ms);
    CHECK(worker.terminate() == cancel_result::finished);
  });
}

TEST_CASE("terminate with no grace insists at once", "[terminate]") {
  run([] {
    auto worker = spin([] { shield([] { sleep(); }); });
    snooze();
    worker.cancel();
    snooze();
    CHECK(worker.state() == fiber_state::waiting);
    CHECK(worker.terminate(0s) == cancel_result::already);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
  });
}

TEST_CASE("the shortest grace of several counts", "[terminate]") {
  run([] {
    auto worker = spin([] { shield([] { sleep(); }); });
    snooze();
    const auto begun = clock::now();
    worker.terminate(1h);
    worker.terminate(10ms);
    worker.terminate(10s);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(clock::now() - begun < 1s);
  });
}

TEST_CASE("nothing insists while a fiber unwinds", "[terminate]") {
  run([] {
    bool cleaned_up = false;
    auto worker = spin([&] {
      const at_end cleaning{[&] {
        sleep_for(40ms);
        cleaned_up = true;
      }};
      sleep();
    });
    snooze();
    worker.terminate(5ms);
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(cleaned_up);
  });
}

TEST_CASE("a fiber that ends in time leaves nothing of its termination behind", "[terminate]") {
  run([] {
    for (int i = 0; i < 100; ++i) {
      auto worker = spin([] { sleep(); });
      snooze();
      worker.terminate(1h);
      CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    }
    suspend();  // an armed timer would keep this waiting for an hour
  });
}

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
      CHECK(std::string(late.what()).find("cancel_test.cpp") != std::string::npos);
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
    const bool done = move_on_after(200ms, [&](deadline& limit) {
      group both;
      both.spin([&] {
        for (; beats < 5; ++beats) {
          sleep_for(60ms);
          limit.reset(200ms);
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
    CHECK(beats == 5);
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

TEST_CASE("a stop that is requested by another fiber ends a call", "[stop]") {
  run([] {
    std::stop_source source;
    auto other = spin([&] {
      sleep_for(5ms);
      source.request_stop();
    });
    CHECK_FALSE(move_on_when_stopped(source.get_token(), [] { sleep(); }));
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
    CHECK(move_on_when_stopped(std::stop_token(), [] { return 3; }) == 3);
    CHECK_FALSE(move_on_when_stopped(source.get_token(), [] { return snooze(), 3; }).has_value());
  });
}

TEST_CASE("a stop that is requested on another thread ends a call, whenever it comes", "[stop]") {
  run([] {
    const auto rounds = testing::scaled(20'000, 500);
    for (std::size_t i = 0; i < rounds; ++i) {
      std::stop_source source;
      std::jthread other([&] { source.request_stop(); });
      move_on_when_stopped(source.get_token(), [&] {
        if (i % 2 == 0) sleep();
      });
    }
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("a stop leaves what is outside of its call alone", "[stop]") {
  run([] {
    std::stop_source inner;
    bool stopped = false;
    const bool in_time = move_on_after(1h, [&] {
      inner.request_stop();
      stopped = !move_on_when_stopped(inner.get_token(), [] { sleep(); });
      snooze();
    });
    CHECK(in_time);
    CHECK(stopped);
  });
}

TEST_CASE("a token is stopped when its call is interrupted, before anything unwinds", "[stop]") {
  run([] {
    std::vector<int> order;
    auto worker = spin([&] {
      with_stop_token([&](const std::stop_token& token) {
        const std::stop_callback note(token, [&] { order.push_back(1); });
        const at_end unwinding{[&] { order.push_back(2); }};
        sleep();
      });
    });
    snooze();
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
    CHECK(order == std::vector{1, 2});
  });
}

TEST_CASE("a token is stopped by what ends its call, and by nothing inside", "[stop]") {
  run([] {
    std::stop_token kept;
    CHECK_FALSE(move_on_after(20ms, [&] {
      with_stop_token([&](std::stop_token token) {
        kept = token;
        CHECK_FALSE(move_on_after(1ms, [] { sleep(); }));
        CHECK_FALSE(token.stop_requested());
        sleep();
      });
    }));
    CHECK(kept.stop_requested());
    CHECK_FALSE(with_stop_token([](std::stop_token token) { return token; }).stop_requested());
    try {
      with_stop_token([&](std::stop_token token) {
        kept = token;
        throw 1;
      });
    } catch (int) {
    }
    CHECK(kept.stop_requested());
  });
}
