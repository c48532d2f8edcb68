// SPDX-License-Identifier: MIT
// What goes along with a fiber that travels, and what stays where it was made.
#include <array>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "quiet.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::at_end;
using testing::await;
using testing::first_error;
using testing::foreign_loop;
using testing::idle_thread;
using testing::run_here;
using testing::this_thread;

namespace {

/// Goes elsewhere when it goes, and asks there for itself.
struct restless {
  static inline motet::thread* target = nullptr;
  static inline int constructed = 0;
  static inline const restless* located = nullptr;

  restless() { ++constructed; }
  ~restless();
};

fiber_local<restless> restless_one;

restless::~restless() {
  const portal open(*target);
  located = &*restless_one;
}

}  // namespace

TEST_CASE("teleport(): a lock is held across a hop", "[teleport]") {
  run_here([] {
    idle_thread worker;
    motet::mutex lock;
    recursive_mutex again;
    const auto traveller = spin([&] {
      lock.lock();
      again.lock();
      {
        const portal open(worker.thread);
        lock.unlock();
        again.lock();
        again.unlock();
        lock.lock();
      }
      lock.unlock();
      again.unlock();
    });
    traveller.await();
    CHECK(lock.try_lock());
    lock.unlock();
  });
}

TEST_CASE("teleport(): objects destroyed at the end of a fiber may travel and come back",
          "[teleport]") {
  run_here([] {
    idle_thread worker;
    const int home = this_thread();
    std::atomic<int> went{0};
    struct traveller {
      motet::thread* goal;
      std::atomic<int>* went;
      traveller(motet::thread& target, std::atomic<int>& hops) : goal(&target), went(&hops) {}
      traveller(traveller&& source) noexcept
          : goal(std::exchange(source.goal, nullptr)), went(source.went) {}
      ~traveller() {
        if (goal == nullptr) return;
        const portal open(*goal);
        *went = this_thread();
      }
    };
    spin([payload = traveller(worker.thread, went)] {}).await();
    CHECK(went == worker.number);
    thread_pool pool(1);
    went = 0;
    pool.post([payload = traveller(worker.thread, went)] {});
    pool.drain();
    CHECK(went == worker.number);
    CHECK(this_thread() == home);
  });
}

TEST_CASE("teleport(): children stay where they were spun, and end first", "[teleport]") {
  run_here([] {
    idle_thread worker;
    std::atomic<int> place{0};
    std::atomic<int> ended_on{0};
    const auto child = [&] {
      const at_end note([&] { ended_on = this_thread(); });
      ++place;
      sleep();
    };
    SECTION("one of home") {
      const int home = this_thread();
      spin([&] {
        spin(child);
        snooze();
        teleport(worker.thread);
      }).await();
      CHECK(ended_on == home);
    }
    SECTION("one abroad") {
      const auto traveller = spin([&] {
        {
          const portal open(worker.thread);
          spin(child);
        }
        await(place, 1);
        return ended_on.load();
      });
      CHECK(traveller.await() == 0);
      CHECK(ended_on == worker.number);
    }
    SECTION("a failure abroad reaches its parent at home") {
      const auto traveller = spin([&] {
        {
          const portal open(worker.thread);
          spin([] {
            sleep_for(1ms);
            throw first_error();
          });
        }
        sleep();
      });
      CHECK_THROWS_AS(traveller.await(), first_error);
    }
    SECTION("or comes with its end") {
      const auto traveller = spin([&] {
        const portal open(worker.thread);
        spin([] { throw first_error(); });
        shield([] { snooze(); });
      });
      CHECK_THROWS_AS(traveller.await(), first_error);
    }
  });
}

TEST_CASE("fiber::terminate() on a migrated fiber reaches its children abroad",
          "[teleport][terminate]") {
  run_here([] {
    idle_thread worker;
    std::atomic<int> place{0};
    const auto stubborn = [&] {
      ++place;
      shield([] { sleep(); });
    };
    SECTION("while it is there") {
      const auto traveller = spin([&] {
        const portal open(worker.thread);
        auto child = spin(stubborn);
        shield([&] { child.await(); });
      });
      await(place, 1);
      traveller.terminate(5ms);
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
    SECTION("when it has come back") {
      const auto traveller = spin([&] {
        {
          const portal open(worker.thread);
          spin(stubborn);
        }
        sleep();
      });
      await(place, 1);
      traveller.terminate(5ms);
      CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    }
  });
}

TEST_CASE("portal: fibers that a visitor spins do not keep the pool or thread from ending",
          "[teleport]") {
  run_here([] {
    std::atomic<int> ends{0};
    {
      thread_pool pool(1);
      {
        const portal open(pool);
        spin([&] {
          sleep_for(5ms);
          ++ends;
        });
      }
      pool.drain();
      CHECK(ends == 1);
    }
    idle_thread worker;
    {
      const portal open(worker.thread);
      spin([&] {
        const at_end note([&] { ++ends; });
        sleep();
      });
    }
    worker.thread.cancel();
    CHECK_THROWS_AS(worker.thread.await(), fiber_cancelled);
    CHECK(ends == 2);
  });
}

TEST_CASE("group: a group takes its migrated fiber back to its own thread", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const int home = this_thread();
    int ended_on = 0;
    int last_thread = 0;
    spin([&] {
      {
        group children;
        children.spin([&] {
          const at_end note([&] { ended_on = this_thread(); });
          sleep();
        });
        snooze();
        teleport(worker.thread);
      }
      last_thread = this_thread();
    }).await();
    CHECK(ended_on == home);
    CHECK(last_thread == home);
  });
}

TEST_CASE("fiber::await() on the current fiber throws after a migration, too", "[teleport]") {
  run_here([] {
    idle_thread worker;
    const auto traveller = spin([&] {
      const portal open(worker.thread);
      current().await();
    });
    CHECK_THROWS_AS(traveller.await(), std::logic_error);
  });
}

TEST_CASE("thread_pool: a job that migrates belongs to its worker until it ends", "[teleport]") {
  run_here([] {
    thread_pool pool(2);
    idle_thread worker;
    std::atomic<int> ends{0};
    for (int i = 0; i < 100; ++i) {
      pool.post([&] {
        teleport(worker.thread);
        ++ends;
      });
    }
    pool.drain();
    CHECK(ends == 100);
    const auto value = pool.submit([&] {
      const portal open(worker.thread);
      return this_thread();
    });
    CHECK(value.get() == worker.number);
  });
}

TEST_CASE("thread: one that ends sends its visitors home", "[teleport]") {
  run_here([] {
    std::atomic<int> place{0};
    const int home = this_thread();
    int last = 0;
    std::optional<idle_thread> visited(std::in_place);
    const auto traveller = spin([&] {
      try {
        const portal open(visited->thread);
        ++place;
        sleep();
      } catch (const cancelled&) {
        last = this_thread();
        sleep_for(1ms);  // which it may, here
        throw;
      }
    });
    await(place, 1);
    visited.reset();
    CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    CHECK(last == home);
  });
}

TEST_CASE("net::tcp_stream goes with its fiber, and is used on the thread that it visits",
          "[teleport]") {
  run_here([] {
    idle_thread worker;
    net::tcp_listener listener(net::endpoint::loopback(0));
    const auto echo = spin([&] {
      net::tcp_stream peer = listener.accept();
      std::array<std::byte, 1> byte{};
      while (peer.read(byte) == 1) peer.write_all(byte);
    });
    net::tcp_stream stream = net::tcp_stream::connect(listener.local_endpoint());
    const auto round_trip = [&](std::byte value) {
      std::array<std::byte, 1> byte{value};
      stream.write_all(byte);
      byte[0] = std::byte{0};
      return stream.read(byte) == 1 && byte[0] == value;
    };
    for (int i = 0; i < 20; ++i) {
      CHECK(round_trip(std::byte{1}));
      const portal open(worker.thread);
      if (!round_trip(std::byte{2})) throw first_error();
    }
    stream.close();
    echo.await();
  });
}

TEST_CASE("teleport(): state of a main fiber is its own abroad", "[detour][real]") {
  run(testing::quiet(), [] {
    idle_thread worker;
    foreign_loop loop;
    motet::mutex lock;
    shared_mutex rwlock;
    lock.lock();
    rwlock.lock();
    {
      const portal open(worker.thread);
      CHECK_THROWS_AS(lock.lock(), std::logic_error);
      lock.unlock();
      rwlock.unlock();
    }
    {
      const portal open(loop);
      lock.lock();
    }
    CHECK_THROWS_AS(spin([&] { lock.unlock(); }).await(), std::logic_error);
    lock.unlock();
  });
}

TEST_CASE("thread::await() ends for a main fiber that has migrated", "[detour][real]") {
  run_here([] {
    idle_thread worker;
    std::optional<bool> refused;
    const auto leaves = [&] {
      const int home = this_thread();
      {
        const portal open(worker.thread);
        CHECK(this_thread() == worker.number);
      }
      CHECK(this_thread() == home);
      try {
        teleport(worker.thread);
        refused = false;
      } catch (const std::logic_error&) {
        refused = true;
      }
    };
    offload(leaves);
    CHECK(refused == true);
    refused.reset();
    std::thread(leaves).join();
    CHECK(refused == true);
  });
}

TEST_CASE("fiber_local: a value that migrates in its destructor finds itself", "[detour][real]") {
  run_here([] {
    idle_thread worker;
    restless::target = &worker.thread;
    const restless* self = nullptr;
    spin([&] { self = &*restless_one; }).await();
    CHECK(restless::located == self);
    CHECK(restless::constructed == 1);
  });
}
