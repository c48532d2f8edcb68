// SPDX-License-Identifier: MIT
// Fibers that go from thread to thread and come back, also when they are interrupted.
#include <atomic>
#include <chrono>
#include <exception>
#include <motet/motet.hpp>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::at_end;
using testing::await;
using testing::caller;
using testing::first_error;
using testing::forgetful;
using testing::idle_thread;
using testing::quiet;
using testing::run_here;
using testing::this_thread;

TEST_CASE("a fiber goes to another thread, and ends at home", "[teleport]") {
  run_here([] {
    idle_thread there;
    const int here = this_thread();
    int before = 0;
    int after = 0;
    const auto traveller = spin([&] {
      before = this_thread();
      teleport(there.itself);
      after = this_thread();
      return 7;
    });
    CHECK(traveller.await() == 7);
    CHECK(before == here);
    CHECK(after == there.number);
    CHECK(this_thread() == here);
  });
}

TEST_CASE("there and back, and where it is already costs nothing", "[teleport]") {
  run_here([] {
    idle_thread a;
    idle_thread b;
    a.itself.call([&] {
      std::vector<int> seen{this_thread()};
      teleport(b.itself);
      seen.push_back(this_thread());
      teleport(a.itself);
      seen.push_back(this_thread());
      teleport(a.itself);
      seen.push_back(this_thread());
      REQUIRE(seen == std::vector{a.number, b.number, a.number, a.number});
    });
  });
}

TEST_CASE("it is the same fiber everywhere", "[teleport]") {
  run_here([] {
    idle_thread there;
    static const fiber_local<int> number;
    const auto traveller = spin({.name = "traveller"}, [&] {
      number.get() = 3;
      const fiber_ref before = current();
      teleport(there.itself);
      const bool same = current() == before && current().id() == before.id();
      const bool kept = number.get() == 3 && current().name() == "traveller";
      number.get() = 4;
      teleport(there.itself);
      return same && kept && number.get() == 4;
    });
    CHECK(traveller.await());
  });
}

TEST_CASE("a stopped destination throws where the fiber still is", "[teleport]") {
  run_here([] {
    const int here = this_thread();
    motet::thread over(quiet(), [] {});
    over.await();
    CHECK_THROWS_AS(teleport(over), executor_stopped);
    CHECK_THROWS_AS(portal(over), executor_stopped);
    thread_pool pool(1);
    pool.stop();
    CHECK_THROWS_AS(teleport(pool), executor_stopped);
    forgetful lost;
    CHECK_THROWS_AS(teleport(lost), executor_stopped);
    CHECK(this_thread() == here);
  });
}

TEST_CASE("an executor that calls at once changes nothing", "[teleport]") {
  run_here([] {
    caller at_once;
    const int here = this_thread();
    const std::size_t hops = testing::scaled(100'000, 10'000);
    for (std::size_t i = 0; i < hops; ++i) teleport(at_once);
    CHECK(at_once.calls == static_cast<int>(hops));
    CHECK(this_thread() == here);
    idle_thread there;
    spin([&] {
      teleport(there.itself);
      for (std::size_t i = 0; i < hops; ++i) teleport(at_once);
      return this_thread();
    }).await();
    inline_executor nowhere;
    teleport(nowhere);
    CHECK(this_thread() == here);
  });
}

TEST_CASE("a portal leads back, also when an exception leaves it", "[teleport]") {
  run_here([] {
    idle_thread there;
    const int here = this_thread();
    {
      const portal open(there.itself);
      CHECK(this_thread() == there.number);
    }
    CHECK(this_thread() == here);
    bool caught = false;
    try {
      const portal open(there.itself);
      throw first_error();
    } catch (const first_error&) {
      caught = this_thread() == here && std::uncaught_exceptions() == 0;
    }
    CHECK(caught);
  });
}

TEST_CASE("portals nest, and lead back in turn", "[teleport]") {
  run_here([] {
    idle_thread b;
    idle_thread c;
    const int here = this_thread();
    std::vector<int> seen;
    {
      const portal to_b(b.itself);
      seen.push_back(this_thread());
      {
        const portal to_c(c.itself);
        seen.push_back(this_thread());
        const portal there_already(c.itself);
        seen.push_back(this_thread());
      }
      seen.push_back(this_thread());
    }
    seen.push_back(this_thread());
    CHECK(seen == std::vector{b.number, c.number, c.number, b.number, here});
  });
}

TEST_CASE("a portal may lead home, from where another one leads back", "[teleport]") {
  run_here([] {
    idle_thread a;
    idle_thread b;
    const auto seen = a.itself.call([&] {
      std::vector<int> places;
      const auto note = [&] { places.push_back(this_thread()); };
      for (int i = 0; i < 100; ++i) {
        places.clear();
        const portal to_b(b.itself);
        note();
        {
          const portal home(a.itself);
          note();
          snooze();
          const portal to_b_again(b.itself);
          note();
        }
        note();
      }
      note();
      return places;
    });
    CHECK(seen == std::vector{b.number, a.number, b.number, b.number, a.number});
  });
}

TEST_CASE("what was caught can be thrown on after a hop", "[teleport]") {
  run_here([] {
    idle_thread there;
    const auto traveller = spin([&] {
      try {
        throw first_error();
      } catch (const first_error&) {
        teleport(there.itself);
        throw;
      }
    });
    CHECK_THROWS_AS(traveller.await(), first_error);
    CHECK(there.itself.call([] { return std::uncaught_exceptions(); }) == 0);
  });
}

TEST_CASE("after many throws through portals both threads are as before", "[teleport][stress]") {
  run_here([] {
    idle_thread there;
    const std::size_t rounds = testing::scaled(10'000, testing::under_tsan ? 500 : 2'000);
    std::size_t caught = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      try {
        const portal open(there.itself);
        throw first_error();
      } catch (const first_error&) {
        ++caught;
      }
    }
    CHECK(caught == rounds);
    const auto as_before = [] {
      const bool none = std::uncaught_exceptions() == 0 && std::current_exception() == nullptr;
      return none && !move_on_after(30ms, [] { sleep(); });
    };
    CHECK(as_before());
    CHECK(there.itself.call(as_before));
  });
}

TEST_CASE("a deadline goes along", "[teleport]") {
  run_here([] {
    idle_thread there;
    const int here = this_thread();
    int slept = 0;
    const bool in_time = move_on_after(100ms, [&] {
      const portal open(there.itself);
      slept = this_thread();
      sleep();
    });
    CHECK_FALSE(in_time);
    CHECK(slept == there.number);
    CHECK(this_thread() == here);
    // Made there, it comes back.
    CHECK_FALSE(spin([&] {
                  teleport(there.itself);
                  return move_on_after(100ms, [&] {
                    const portal open(there.itself);
                    sleep();
                  });
                }).await());
  });
}

TEST_CASE("a deadline ends the way to a thread that is busy", "[teleport]") {
  run_here([] {
    if (testing::on_sim()) return;  // its time would not wait
    idle_thread there;
    std::atomic<bool> over{false};
    there.itself.post([&] {
      while (!over.load()) continue;
    });
    const int here = this_thread();
    bool arrived = false;
    CHECK_FALSE(move_on_after(20ms, [&] {
      const portal open(there.itself);
      arrived = true;
    }));
    CHECK_FALSE(arrived);
    const auto other = spin([&] { teleport(there.itself); });
    sleep_for(1ms);
    other.cancel();
    CHECK_THROWS_AS(other.await(), fiber_cancelled);
    CHECK(this_thread() == here);
    over.store(true);
    there.itself.call([] {});
  });
}

TEST_CASE("a fiber is interrupted where it is", "[teleport]") {
  run_here([] {
    idle_thread there;
    const int here = this_thread();
    std::atomic<int> place{0};
    std::atomic<int> thrown_on{0};
    const auto away = [&] {
      const portal open(there.itself);
      ++place;
      try {
        sleep();
      } catch (...) {
        thrown_on = this_thread();
        throw;
      }
    };
    SECTION("cancelled") {
      const auto traveller = spin(away);
      await(place, 1);
      CHECK(traveller.cancel() == cancel_result::accepted);
      CHECK(traveller.cancel() == cancel_result::already);
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
    SECTION("raised in") {
      const auto traveller = spin(away);
      await(place, 1);
      traveller.raise(std::make_exception_ptr(first_error()));
      CHECK_THROWS_AS(traveller.await(), first_error);
    }
    SECTION("ended by a scope outside") {
      std::stop_source stop;
      const auto traveller = spin([&] { move_on_when_stopped(stop.get_token(), away); });
      await(place, 1);
      stop.request_stop();
      traveller.await();
    }
    SECTION("a child fails at home") {
      const auto parent = spin([&] {
        spin([&] {
          await(place, 1);
          throw first_error();
        });
        away();
      });
      CHECK_THROWS_AS(parent.await(), first_error);
    }
    SECTION("terminated") {
      const auto traveller = spin(away);
      await(place, 1);
      traveller.terminate(10ms);
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
    CHECK(thrown_on == there.number);
    CHECK(this_thread() == here);
  });
}

TEST_CASE("what it swallowed abroad is thrown again at home", "[teleport]") {
  run_here([] {
    idle_thread there;
    std::atomic<int> place{0};
    bool again = false;
    const auto traveller = spin([&] {
      {
        const portal open(there.itself);
        ++place;
        try {
          sleep();
        } catch (const cancelled&) {
        }
      }
      try {
        sleep();
      } catch (const cancelled&) {
        again = true;
        throw;
      }
    });
    await(place, 1);
    traveller.cancel();
    CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    CHECK(again);
  });
}

TEST_CASE("tokens and results reach a fiber that is away", "[teleport]") {
  run_here([] {
    idle_thread there;
    std::atomic<int> place{0};
    const auto traveller = spin([&] {
      const portal open(there.itself);
      ++place;
      const int got = suspend<int>();
      ++place;
      sleep();
      return got;
    });
    await(place, 1);
    CHECK(traveller.schedule(5));
    await(place, 2);
    traveller.stop(9);
    CHECK(traveller.await() == 9);
  });
}

TEST_CASE("cancelled at whatever hop, it comes home", "[teleport]") {
  run_here([] {
    idle_thread b;
    idle_thread c;
    const int here = this_thread();
    for (int stop_at = 1; stop_at <= 4; ++stop_at) {
      std::atomic<int> place{0};
      int reached = 0;
      const auto reach = [&](int number) {
        reached = number;
        if (number != stop_at) return;
        ++place;
        sleep();
      };
      int last = 0;
      const auto traveller = spin([&] {
        const at_end note([&] { last = this_thread(); });
        reach(1);
        const portal to_b(b.itself);
        reach(2);
        {
          const portal to_c(c.itself);
          reach(3);
        }
        reach(4);
      });
      await(place, 1);
      traveller.cancel();
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
      CHECK(reached == stop_at);
      CHECK(last == here);
    }
  });
}

TEST_CASE("cancelled at any time, it comes home", "[teleport][stress]") {
  run_here([] {
    idle_thread b;
    idle_thread c;
    const int here = this_thread();
    const std::size_t rounds = testing::scaled(20'000, testing::under_tsan ? 300 : 2'000);
    std::size_t elsewhere = 0;
    std::size_t ended = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto traveller = spin([&] {
        const at_end note([&] {
          if (this_thread() != here) ++elsewhere;
        });
        const portal to_b(b.itself);
        const portal to_c(c.itself);
        snooze();
      });
      for (std::size_t j = 0; j < i % 7; ++j) snooze();
      if (i % 3 == 0) sleep_for(std::chrono::microseconds(i % 40));
      traveller.cancel();
      try {
        traveller.await();
      } catch (const fiber_cancelled&) {
      }
      ++ended;
    }
    CHECK(elsewhere == 0);
    CHECK(ended == rounds);
  });
}
