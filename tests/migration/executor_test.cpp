// SPDX-License-Identifier: MIT
// Executors: strands, loops that are not motet's, and a post() that does what it should not.
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::await;
using testing::caller;
using testing::first_error;
using testing::foreign_loop;
using testing::idle_thread;
using testing::run_here;
using testing::this_thread;

namespace {

/// An executor whose post() does something else as well.
struct odd_executor {
  std::function<void(const std::function<void()>&)> does;
  void post(const std::function<void()>& f) const { does(f); }
};

}  // namespace

TEST_CASE("on a strand one at a time, in order, and while one waits another", "[teleport]") {
  run_here([] {
    thread_pool pool(4);
    strand alone(pool);
    std::vector<std::string> order;
    event go_on;
    alone.post([&] {
      order.push_back("A1");
      go_on.wait();
      order.push_back("A2");
    });
    alone.post([&] {
      order.push_back("B1");
      go_on.set();
      order.push_back("B2");
    });
    pool.drain();
    CHECK(order == std::vector<std::string>{"A1", "B1", "B2", "A2"});
  });
}

TEST_CASE("many fibers of many threads count over a strand", "[teleport][stress]") {
  run_here([] {
    thread_pool pool(4);
    strand alone(pool);
    const std::size_t fibers = 100;
    const std::size_t rounds = testing::scaled(1'000, testing::under_tsan ? 20 : 100);
    std::size_t count = 0;
    for (std::size_t i = 0; i < fibers; ++i) {
      pool.post([&] {
        for (std::size_t j = 0; j < rounds; ++j) {
          const portal in(alone);
          ++count;
        }
      });
    }
    pool.drain();
    CHECK(count == fibers * rounds);
  });
}

TEST_CASE("strands that enter each other do not deadlock", "[teleport][stress]") {
  run_here([] {
    thread_pool pool(2);
    strand a(pool);
    strand b(pool);
    const std::size_t rounds = testing::scaled(10'000, testing::under_tsan ? 200 : 2'000);
    const auto hops = [rounds](strand& first, strand& second) {
      for (std::size_t i = 0; i < rounds; ++i) {
        const portal outer(first);
        const portal inner(second);
      }
    };
    auto one = pool.submit([&] { hops(a, b); });
    auto other = pool.submit([&] { hops(b, a); });
    one.get();
    other.get();
  });
}

TEST_CASE("what is bound to an executor is touched there alone", "[teleport]") {
  run_here([] {
    idle_thread there;
    const int here = this_thread();
    executor_bound<std::vector<int>> seen(there.itself);
    const auto size = seen.call([](std::vector<int>& its) {
      its.push_back(this_thread());
      return std::make_unique<std::size_t>(its.size());
    });
    CHECK(*size == 1);
    CHECK(seen.call([](std::vector<int>& its) { return its.front(); }) == there.number);
    CHECK_THROWS_AS(seen.call([](std::vector<int>&) { throw first_error(); }), first_error);
    CHECK(this_thread() == here);
  });
}

TEST_CASE("an executor takes functions for anything that has post()", "[teleport]") {
  run_here([] {
    idle_thread there;
    caller at_once;
    std::atomic<int> ran_on{0};
    executor where(there.itself);
    where.post([&, owned = std::make_unique<int>(1)] { ran_on = this_thread(); });
    there.itself.call([] {});
    CHECK(ran_on == there.number);
    where = at_once;
    where.post([&] { ran_on = this_thread(); });
    CHECK(ran_on == this_thread());
  });
}

TEST_CASE("a loop that is not motet's calls a fiber as any function", "[teleport]") {
  run_here([] {
    foreign_loop loop;
    const int here = this_thread();
    for (int i = 0; i < 3; ++i) {
      std::vector<int> seen;
      {
        const portal open(loop);
        seen.push_back(this_thread());
        teleport(loop);
        const portal there_already(loop);
        seen.push_back(this_thread());
      }
      seen.push_back(this_thread());
      CHECK(seen == std::vector{loop.number(), loop.number(), here});
    }
    CHECK(loop.calls() == 3);
    CHECK_THROWS_AS(
        [&] {
          const portal open(loop);
          throw first_error();
        }(),
        first_error);
    idle_thread there;
    spin([&] {
      teleport(loop);
      teleport(there.itself);
      sleep_for(1ms);
      teleport(loop);
    }).await();
  });
}

TEST_CASE("on a loop that is not motet's a fiber cannot wait", "[teleport]") {
  run_here([] {
    foreign_loop loop;
    idle_thread there;
    const testing::descriptor_pair pipe = testing::make_pipe();
    std::array<char, 8> bytes{};
    motet::mutex free;
    motet::mutex held;
    const std::lock_guard holding(held);
    int refused = 0;
    const auto refuses = [&](auto what) {
      try {
        what();
      } catch (const std::logic_error&) {
        ++refused;
      }
    };
    {
      const portal open(loop);
      refuses([] { sleep_for(1ms); });
      refuses([] { sleep(); });
      refuses([&] { held.lock(); });
      refuses([&] { shield([&] { held.lock(); }); });
      refuses([&] { there.itself.call([] {}); });
      refuses([&] { const portal further(there.itself); });
      refuses([] { spin([] {}); });
      refuses([] {
        group children;
        children.spin([] {});
      });
      refuses([] { suspend(); });
      refuses([&] { io::read(pipe.first(), std::as_writable_bytes(std::span(bytes))); });
      refuses([] { offload([] {}); });
      snooze();
      checkpoint();
      free.lock();
      free.unlock();
    }
    CHECK(refused == 11);
    held.unlock();
    held.lock();
  });
}

TEST_CASE("a loop that is closed says so", "[teleport]") {
  run_here([] {
    foreign_loop loop;
    std::atomic<bool> over{false};
    std::atomic<int> busy{0};
    loop.post([&] {
      ++busy;
      while (!over.load()) continue;
    });
    await(busy, 1);
    std::vector<fiber<void>> travellers;
    for (int i = 0; i < 100; ++i) travellers.push_back(spin([&] { const portal open(loop); }));
    snooze();
    loop.take_no_more();
    over = true;
    loop.close();
    int told = 0;
    for (const auto& each : travellers) {
      try {
        each.await();
      } catch (const executor_stopped&) {
        ++told;
      }
    }
    CHECK(told == 100);
    CHECK_THROWS_AS(teleport(loop), executor_stopped);
  });
}

TEST_CASE("a post() that travels is refused", "[detour]") {
  run_here([] {
    idle_thread there;
    idle_thread further;
    const odd_executor to{[&](const auto& f) {
      const portal open(further.itself);
      f();
    }};
    CHECK_THROWS_AS(spin([&] { teleport(to); }).await(), std::logic_error);
    CHECK_THROWS_AS(spin([&] { const portal open(to); }).await(), std::logic_error);
    CHECK_THROWS_AS(spin([&] {
                      teleport(there.itself);
                      teleport(to);
                    }).await(),
                    std::logic_error);
  });
}

TEST_CASE("a post() that throws when it has called loses nobody", "[detour]") {
  run_here([] {
    const int here = this_thread();
    const odd_executor to{[](const auto& f) {
      f();
      throw first_error();
    }};
    {
      const portal open(to);
      CHECK(this_thread() == here);
    }
    spin([&] { teleport(to); }).await();
  });
}

TEST_CASE("a post() that waits is not interrupted, and keeps nothing back", "[detour]") {
  run_here([] {
    idle_thread there;
    std::atomic<int> place{0};
    const odd_executor to{[&](const auto& f) {
      ++place;
      sleep_for(5ms);
      there.itself.post(f);
    }};
    const auto goes = [&] {
      teleport(to);
      sleep();
    };
    const auto traveller = spin(goes);
    await(place, 1);
    traveller.raise(std::make_exception_ptr(first_error()));
    CHECK_THROWS_AS(traveller.await(), first_error);
    const auto cancelled = spin(goes);
    await(place, 2);
    cancelled.cancel();
    CHECK_THROWS_AS(cancelled.await(), fiber_cancelled);
  });
}

TEST_CASE("a runtime may end while another thread posts to it", "[executor]") {
  for (std::size_t round = 0; round < testing::scaled(20'000, 500); ++round) {
    std::atomic<bool> ready{false};
    std::thread poster;
    run_here([&] {
      poster = std::thread([&ready, home = here()] {
        ready = true;
        try {
          home.post([] {});
        } catch (const executor_stopped&) {
        }
      });
      while (!ready) snooze();
      for (std::size_t turn = 0; turn < round % 8; ++turn) snooze();
    });
    poster.join();
  }
}
