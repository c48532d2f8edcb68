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

TEST_CASE("strand runs one fiber at a time, in order, and others while one waits", "[teleport]") {
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

TEST_CASE("strand protects a counter of many fibers on many threads", "[teleport][stress]") {
  run_here([] {
    thread_pool pool(4);
    strand alone(pool);
    const std::size_t fibers = 100;
    const std::size_t rounds = testing::scaled(1'000, testing::under_tsan ? 20 : 100);
    std::size_t count = 0;
    for (std::size_t i = 0; i < fibers; ++i) {
      pool.post([&] {
        for (std::size_t j = 0; j < rounds; ++j) {
          const portal visit(alone);
          ++count;
        }
      });
    }
    pool.drain();
    CHECK(count == fibers * rounds);
  });
}

TEST_CASE("strand: strands that enter each other do not deadlock", "[teleport][stress]") {
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
    auto first = pool.submit([&] { hops(a, b); });
    auto second = pool.submit([&] { hops(b, a); });
    first.get();
    second.get();
  });
}

TEST_CASE("executor_bound: the object is used only on its executor", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const int home = this_thread();
    executor_bound<std::vector<int>> visits(worker.thread);
    const auto size = visits.call([](std::vector<int>& numbers) {
      numbers.push_back(this_thread());
      return std::make_unique<std::size_t>(numbers.size());
    });
    CHECK(*size == 1);
    CHECK(visits.call([](std::vector<int>& numbers) { return numbers.front(); }) == worker.number);
    CHECK_THROWS_AS(visits.call([](std::vector<int>&) { throw first_error(); }), first_error);
    CHECK(this_thread() == home);
  });
}

TEST_CASE("executor accepts anything that has post()", "[teleport]") {
  run_here([] {
    idle_thread worker;
    caller at_once;
    std::atomic<int> ran_on{0};
    executor target(worker.thread);
    target.post([&, number = std::make_unique<int>(1)] { ran_on = this_thread(); });
    worker.thread.call([] {});
    CHECK(ran_on == worker.number);
    target = at_once;
    target.post([&] { ran_on = this_thread(); });
    CHECK(ran_on == this_thread());
  });
}

TEST_CASE("executor: a foreign loop calls a fiber like any function", "[teleport]") {
  run_here([] {
    foreign_loop loop;
    const int home = this_thread();
    for (int i = 0; i < 3; ++i) {
      std::vector<int> visits;
      {
        const portal open(loop);
        visits.push_back(this_thread());
        teleport(loop);
        const portal there_already(loop);
        visits.push_back(this_thread());
      }
      visits.push_back(this_thread());
      CHECK(visits == std::vector{loop.number(), loop.number(), home});
    }
    CHECK(loop.calls() == 3);
    CHECK_THROWS_AS(
        [&] {
          const portal open(loop);
          throw first_error();
        }(),
        first_error);
    idle_thread worker;
    spin([&] {
      teleport(loop);
      teleport(worker.thread);
      sleep_for(1ms);
      teleport(loop);
    }).await();
  });
}

TEST_CASE("executor: a fiber cannot wait on a foreign loop", "[teleport]") {
  run_here([] {
    foreign_loop loop;
    idle_thread worker;
    const testing::descriptor_pair pipe = testing::make_pipe();
    std::array<char, 8> bytes{};
    motet::mutex free;
    motet::mutex lock;
    const std::lock_guard holding(lock);
    int refused = 0;
    const auto refuses = [&](auto wait) {
      try {
        wait();
      } catch (const std::logic_error&) {
        ++refused;
      }
    };
    {
      const portal open(loop);
      refuses([] { sleep_for(1ms); });
      refuses([] { sleep(); });
      refuses([&] { lock.lock(); });
      refuses([&] { shield([&] { lock.lock(); }); });
      refuses([&] { worker.thread.call([] {}); });
      refuses([&] { const portal further(worker.thread); });
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
    lock.unlock();
    lock.lock();
  });
}

TEST_CASE("executor: a closed foreign loop throws", "[teleport]") {
  run_here([] {
    foreign_loop loop;
    std::atomic<bool> finished{false};
    std::atomic<int> busy{0};
    loop.post([&] {
      ++busy;
      while (!finished.load()) continue;
    });
    await(busy, 1);
    std::vector<fiber<void>> travellers;
    for (int i = 0; i < 100; ++i) travellers.push_back(spin([&] { const portal open(loop); }));
    snooze();
    loop.take_no_more();
    finished = true;
    loop.close();
    int throws = 0;
    for (const auto& traveller : travellers) {
      try {
        traveller.await();
      } catch (const executor_stopped&) {
        ++throws;
      }
    }
    CHECK(throws == 100);
    CHECK_THROWS_AS(teleport(loop), executor_stopped);
  });
}

TEST_CASE("executor refuses a post() that migrates", "[detour]") {
  run_here([] {
    idle_thread worker;
    idle_thread further;
    const odd_executor target{[&](const auto& f) {
      const portal open(further.thread);
      f();
    }};
    CHECK_THROWS_AS(spin([&] { teleport(target); }).await(), std::logic_error);
    CHECK_THROWS_AS(spin([&] { const portal open(target); }).await(), std::logic_error);
    CHECK_THROWS_AS(spin([&] {
                      teleport(worker.thread);
                      teleport(target);
                    }).await(),
                    std::logic_error);
  });
}

TEST_CASE("executor: a post() that throws after its call loses no fiber", "[detour]") {
  run_here([] {
    const int home = this_thread();
    const odd_executor target{[](const auto& f) {
      f();
      throw first_error();
    }};
    {
      const portal open(target);
      CHECK(this_thread() == home);
    }
    spin([&] { teleport(target); }).await();
  });
}

TEST_CASE("executor: a post() that waits is not interrupted, and holds nothing up", "[detour]") {
  run_here([] {
    idle_thread worker;
    std::atomic<int> place{0};
    const odd_executor target{[&](const auto& f) {
      ++place;
      sleep_for(5ms);
      worker.thread.post(f);
    }};
    const auto goes = [&] {
      teleport(target);
      sleep();
    };
    const auto traveller = spin(goes);
    await(place, 1);
    traveller.raise(std::make_exception_ptr(first_error()));
    CHECK_THROWS_AS(traveller.await(), first_error);
    const auto latecomer = spin(goes);
    await(place, 2);
    latecomer.cancel();
    CHECK_THROWS_AS(latecomer.await(), fiber_cancelled);
  });
}

TEST_CASE("executor: a runtime may end while another thread posts to it", "[executor]") {
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
