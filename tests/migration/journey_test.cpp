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

TEST_CASE("teleport() moves a fiber to another thread, and it ends at home", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const int home = this_thread();
    int first_thread = 0;
    int last_thread = 0;
    const auto traveller = spin([&] {
      first_thread = this_thread();
      teleport(worker.thread);
      last_thread = this_thread();
      return 7;
    });
    CHECK(traveller.await() == 7);
    CHECK(first_thread == home);
    CHECK(last_thread == worker.number);
    CHECK(this_thread() == home);
  });
}

TEST_CASE("teleport() from a thread with many runnable fibers, which await travellers",
          "[teleport][real]") {
  run_here([] {
    idle_thread worker;
    bool over = false;
    group others;
    for (int i = 0; i < 4'300; ++i) {  // more than the run queue links
      others.spin([&] {
        while (!over) snooze();
      });
    }
    snooze();
    for (int round = 0; round < 20; ++round) {
      const auto target = spin([&] {
        snooze();
        return round;
      });
      const auto traveller = spin([&] {
        const portal visit(worker.thread);
        return target.await();
      });
      const auto second = spin([&] {
        const portal visit(worker.thread);
        snooze();
        return round;
      });
      REQUIRE(traveller.await() == round);
      REQUIRE(second.await() == round);
    }
    over = true;
    others.await_all();
  });
}

TEST_CASE("teleport() goes there and back again, and does nothing on the current thread",
          "[teleport]") {
  run_here([] {
    idle_thread a;
    idle_thread b;
    a.thread.call([&] {
      std::vector<int> visits{this_thread()};
      teleport(b.thread);
      visits.push_back(this_thread());
      teleport(a.thread);
      visits.push_back(this_thread());
      teleport(a.thread);
      visits.push_back(this_thread());
      REQUIRE(visits == std::vector{a.number, b.number, a.number, a.number});
    });
  });
}

TEST_CASE("teleport() keeps the fiber's identity", "[teleport]") {
  run_here([] {
    idle_thread worker;
    static const fiber_local<int> number;
    const auto traveller = spin({.name = "traveller"}, [&] {
      number.get() = 3;
      const fiber_ref identity = current();
      teleport(worker.thread);
      const bool is_same = current() == identity && current().id() == identity.id();
      const bool is_unchanged = number.get() == 3 && current().name() == "traveller";
      number.get() = 4;
      teleport(worker.thread);
      return is_same && is_unchanged && number.get() == 4;
    });
    CHECK(traveller.await());
  });
}

TEST_CASE("teleport() to a stopped destination throws on the current thread", "[teleport]") {
  run_here([] {
    const int home = this_thread();
    motet::thread stopped_thread(quiet(), [] {});
    stopped_thread.await();
    CHECK_THROWS_AS(teleport(stopped_thread), executor_stopped);
    CHECK_THROWS_AS(portal(stopped_thread), executor_stopped);
    thread_pool pool(1);
    pool.stop();
    CHECK_THROWS_AS(teleport(pool), executor_stopped);
    forgetful dropped;
    CHECK_THROWS_AS(teleport(dropped), executor_stopped);
    CHECK(this_thread() == home);
  });
}

TEST_CASE("teleport() to an executor that calls at once changes nothing", "[teleport]") {
  run_here([] {
    caller at_once;
    const int home = this_thread();
    const std::size_t hops = testing::scaled(100'000, 10'000);
    for (std::size_t i = 0; i < hops; ++i) teleport(at_once);
    CHECK(at_once.calls == static_cast<int>(hops));
    CHECK(this_thread() == home);
    idle_thread worker;
    spin([&] {
      teleport(worker.thread);
      for (std::size_t i = 0; i < hops; ++i) teleport(at_once);
      return this_thread();
    }).await();
    inline_executor immediate;
    teleport(immediate);
    CHECK(this_thread() == home);
  });
}

TEST_CASE("portal leads back, also when an exception leaves it", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const int home = this_thread();
    {
      const portal open(worker.thread);
      CHECK(this_thread() == worker.number);
    }
    CHECK(this_thread() == home);
    bool caught = false;
    try {
      const portal open(worker.thread);
      throw first_error();
    } catch (const first_error&) {
      caught = this_thread() == home && std::uncaught_exceptions() == 0;
    }
    CHECK(caught);
  });
}

TEST_CASE("portal: nested portals lead back in turn", "[teleport]") {
  run_here([] {
    idle_thread b;
    idle_thread c;
    const int home = this_thread();
    std::vector<int> visits;
    {
      const portal to_b(b.thread);
      visits.push_back(this_thread());
      {
        const portal to_c(c.thread);
        visits.push_back(this_thread());
        const portal there_already(c.thread);
        visits.push_back(this_thread());
      }
      visits.push_back(this_thread());
    }
    visits.push_back(this_thread());
    CHECK(visits == std::vector{b.number, c.number, c.number, b.number, home});
  });
}

TEST_CASE("portal may lead home from inside another one", "[teleport]") {
  run_here([] {
    idle_thread a;
    idle_thread b;
    const auto visits = a.thread.call([&] {
      std::vector<int> places;
      const auto note = [&] { places.push_back(this_thread()); };
      for (int i = 0; i < 100; ++i) {
        places.clear();
        const portal to_b(b.thread);
        note();
        {
          const portal home(a.thread);
          note();
          snooze();
          const portal to_b_again(b.thread);
          note();
        }
        note();
      }
      note();
      return places;
    });
    CHECK(visits == std::vector{b.number, a.number, b.number, b.number, a.number});
  });
}

TEST_CASE("portal: a caught exception can be rethrown after a hop", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const auto traveller = spin([&] {
      try {
        throw first_error();
      } catch (const first_error&) {
        teleport(worker.thread);
        throw;
      }
    });
    CHECK_THROWS_AS(traveller.await(), first_error);
    CHECK(worker.thread.call([] { return std::uncaught_exceptions(); }) == 0);
  });
}

TEST_CASE("portal: both threads are unchanged after many throws", "[teleport][stress]") {
  run_here([] {
    idle_thread worker;
    const std::size_t rounds = testing::scaled(10'000, testing::under_tsan ? 500 : 2'000);
    std::size_t catches = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      try {
        const portal open(worker.thread);
        throw first_error();
      } catch (const first_error&) {
        ++catches;
      }
    }
    CHECK(catches == rounds);
    const auto as_before = [] {
      const bool is_clean = std::uncaught_exceptions() == 0 && std::current_exception() == nullptr;
      return is_clean && !move_on_after(30ms, [] { sleep(); });
    };
    CHECK(as_before());
    CHECK(worker.thread.call(as_before));
  });
}

TEST_CASE("teleport(): a deadline goes with the fiber", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const int home = this_thread();
    int slept = 0;
    const bool in_time = move_on_after(100ms, [&] {
      const portal open(worker.thread);
      slept = this_thread();
      sleep();
    });
    CHECK_FALSE(in_time);
    CHECK(slept == worker.number);
    CHECK(this_thread() == home);
    // Made there, it comes back.
    CHECK_FALSE(spin([&] {
                  teleport(worker.thread);
                  return move_on_after(100ms, [&] {
                    const portal open(worker.thread);
                    sleep();
                  });
                }).await());
  });
}

TEST_CASE("teleport() to a busy thread ends at a deadline", "[teleport][real]") {
  run_here([] {
    if (testing::on_sim()) return;  // its time would not wait
    idle_thread worker;
    std::atomic<bool> finished{false};
    worker.thread.post([&] {
      while (!finished.load()) continue;
    });
    const int home = this_thread();
    bool arrived = false;
    CHECK_FALSE(move_on_after(20ms, [&] {
      const portal open(worker.thread);
      arrived = true;
    }));
    CHECK_FALSE(arrived);
    const auto blocker = spin([&] { teleport(worker.thread); });
    sleep_for(1ms);
    blocker.cancel();
    CHECK_THROWS_AS(blocker.await(), fiber_cancelled);
    CHECK(this_thread() == home);
    finished.store(true);
    worker.thread.call([] {});
  });
}

TEST_CASE("fiber::raise() interrupts a fiber on the thread that it visits", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const int home = this_thread();
    std::atomic<int> place{0};
    std::atomic<int> thrown_on{0};
    const auto away = [&] {
      const portal open(worker.thread);
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
    CHECK(thrown_on == worker.number);
    CHECK(this_thread() == home);
  });
}

TEST_CASE("portal: an interruption that was swallowed abroad is thrown again at home",
          "[teleport]") {
  run_here([] {
    idle_thread worker;
    std::atomic<int> place{0};
    bool again = false;
    const auto traveller = spin([&] {
      {
        const portal open(worker.thread);
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

TEST_CASE("fiber::schedule() and await() work for a visiting fiber", "[teleport]") {
  run_here([] {
    idle_thread worker;
    std::atomic<int> place{0};
    const auto traveller = spin([&] {
      const portal open(worker.thread);
      ++place;
      const int value = suspend<int>();
      ++place;
      sleep();
      return value;
    });
    await(place, 1);
    CHECK(traveller.schedule(5));
    await(place, 2);
    traveller.stop(9);
    CHECK(traveller.await() == 9);
  });
}

TEST_CASE("teleport(): a fiber that is cancelled at any hop comes home", "[teleport]") {
  run_here([] {
    idle_thread b;
    idle_thread c;
    const int home = this_thread();
    for (int stop_at = 1; stop_at <= 4; ++stop_at) {
      std::atomic<int> place{0};
      int hops = 0;
      const auto reach = [&](int number) {
        hops = number;
        if (number != stop_at) return;
        ++place;
        sleep();
      };
      int last = 0;
      const auto traveller = spin([&] {
        const at_end note([&] { last = this_thread(); });
        reach(1);
        const portal to_b(b.thread);
        reach(2);
        {
          const portal to_c(c.thread);
          reach(3);
        }
        reach(4);
      });
      await(place, 1);
      traveller.cancel();
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
      CHECK(hops == stop_at);
      CHECK(last == home);
    }
  });
}

TEST_CASE("teleport(): a fiber that is cancelled at any time comes home", "[teleport][stress]") {
  run_here([] {
    idle_thread b;
    idle_thread c;
    const int home = this_thread();
    const std::size_t rounds = testing::scaled(20'000, testing::under_tsan ? 300 : 2'000);
    std::size_t strays = 0;
    std::size_t ends = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto traveller = spin([&] {
        const at_end note([&] {
          if (this_thread() != home) ++strays;
        });
        const portal to_b(b.thread);
        const portal to_c(c.thread);
        snooze();
      });
      for (std::size_t j = 0; j < i % 7; ++j) snooze();
      if (i % 3 == 0) sleep_for(std::chrono::microseconds(i % 40));
      traveller.cancel();
      try {
        traveller.await();
      } catch (const fiber_cancelled&) {
      }
      ++ends;
    }
    CHECK(strays == 0);
    CHECK(ends == rounds);
  });
}
