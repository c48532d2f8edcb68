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
  static inline motet::thread* to = nullptr;
  static inline int made = 0;
  static inline const restless* found = nullptr;

  restless() { ++made; }
  ~restless();
};

fiber_local<restless> restless_one;

restless::~restless() {
  const portal open(*to);
  found = &*restless_one;
}

}  // namespace

TEST_CASE("a lock is held across a hop", "[teleport]") {
  run_here([] {
    idle_thread there;
    motet::mutex lock;
    recursive_mutex again;
    const auto traveller = spin([&] {
      lock.lock();
      again.lock();
      {
        const portal open(there.itself);
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

TEST_CASE("what is destroyed at the end of a fiber may travel, and comes back", "[teleport]") {
  run_here([] {
    idle_thread there;
    const int here = this_thread();
    std::atomic<int> went{0};
    struct traveller {
      motet::thread* to;
      std::atomic<int>* went;
      traveller(motet::thread& where, std::atomic<int>& seen) : to(&where), went(&seen) {}
      traveller(traveller&& from) noexcept : to(std::exchange(from.to, nullptr)), went(from.went) {}
      ~traveller() {
        if (to == nullptr) return;
        const portal open(*to);
        *went = this_thread();
      }
    };
    spin([held = traveller(there.itself, went)] {}).await();
    CHECK(went == there.number);
    thread_pool pool(1);
    went = 0;
    pool.post([held = traveller(there.itself, went)] {});
    pool.drain();
    CHECK(went == there.number);
    CHECK(this_thread() == here);
  });
}

TEST_CASE("children stay where they were spun, and end first", "[teleport]") {
  run_here([] {
    idle_thread there;
    std::atomic<int> place{0};
    std::atomic<int> ended_on{0};
    const auto child = [&] {
      const at_end note([&] { ended_on = this_thread(); });
      ++place;
      sleep();
    };
    SECTION("one of home") {
      const int here = this_thread();
      spin([&] {
        spin(child);
        snooze();
        teleport(there.itself);
      }).await();
      CHECK(ended_on == here);
    }
    SECTION("one abroad") {
      const auto traveller = spin([&] {
        {
          const portal open(there.itself);
          spin(child);
        }
        await(place, 1);
        return ended_on.load();
      });
      CHECK(traveller.await() == 0);
      CHECK(ended_on == there.number);
    }
    SECTION("a failure abroad reaches its parent at home") {
      const auto traveller = spin([&] {
        {
          const portal open(there.itself);
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
        const portal open(there.itself);
        spin([] { throw first_error(); });
        shield([] { snooze(); });
      });
      CHECK_THROWS_AS(traveller.await(), first_error);
    }
  });
}

TEST_CASE("its termination reaches the children that it has abroad", "[teleport][terminate]") {
  run_here([] {
    idle_thread there;
    std::atomic<int> place{0};
    const auto stubborn = [&] {
      ++place;
      shield([] { sleep(); });
    };
    SECTION("while it is there") {
      const auto traveller = spin([&] {
        const portal open(there.itself);
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
          const portal open(there.itself);
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

TEST_CASE("what it has left elsewhere keeps no pool from ending", "[teleport]") {
  run_here([] {
    std::atomic<int> ended{0};
    {
      thread_pool pool(1);
      {
        const portal open(pool);
        spin([&] {
          sleep_for(5ms);
          ++ended;
        });
      }
      pool.drain();
      CHECK(ended == 1);
    }
    idle_thread there;
    {
      const portal open(there.itself);
      spin([&] {
        const at_end note([&] { ++ended; });
        sleep();
      });
    }
    there.itself.cancel();
    CHECK_THROWS_AS(there.itself.await(), fiber_cancelled);
    CHECK(ended == 2);
  });
}

TEST_CASE("a group takes its fiber back to where it was made", "[teleport]") {
  run_here([] {
    idle_thread there;
    const int here = this_thread();
    int ended_on = 0;
    int after = 0;
    spin([&] {
      {
        group children;
        children.spin([&] {
          const at_end note([&] { ended_on = this_thread(); });
          sleep();
        });
        snooze();
        teleport(there.itself);
      }
      after = this_thread();
    }).await();
    CHECK(ended_on == here);
    CHECK(after == here);
  });
}

TEST_CASE("a migrated fiber cannot await itself", "[teleport]") {
  run_here([] {
    idle_thread there;
    const auto traveller = spin([&] {
      const portal open(there.itself);
      current().await();
    });
    CHECK_THROWS_AS(traveller.await(), std::logic_error);
  });
}

TEST_CASE("a job that travels is its worker's until it is over", "[teleport]") {
  run_here([] {
    thread_pool pool(2);
    idle_thread there;
    std::atomic<int> ended{0};
    for (int i = 0; i < 100; ++i) {
      pool.post([&] {
        teleport(there.itself);
        ++ended;
      });
    }
    pool.drain();
    CHECK(ended == 100);
    const auto value = pool.submit([&] {
      const portal open(there.itself);
      return this_thread();
    });
    CHECK(value.get() == there.number);
  });
}

TEST_CASE("a thread that ends sends its visitors home", "[teleport]") {
  run_here([] {
    std::atomic<int> place{0};
    const int here = this_thread();
    int last = 0;
    std::optional<idle_thread> there(std::in_place);
    const auto traveller = spin([&] {
      try {
        const portal open(there->itself);
        ++place;
        sleep();
      } catch (const cancelled&) {
        last = this_thread();
        sleep_for(1ms);  // which it may, here
        throw;
      }
    });
    await(place, 1);
    there.reset();
    CHECK_THROWS_AS(traveller.await(), fiber_cancelled);
    CHECK(last == here);
  });
}

TEST_CASE("a stream goes along, and is used wherever its fiber is", "[teleport]") {
  run_here([] {
    idle_thread there;
    net::tcp_listener listener(net::endpoint::loopback(0));
    const auto echo = spin([&] {
      net::tcp_stream peer = listener.accept();
      std::array<std::byte, 1> byte{};
      while (peer.read(byte) == 1) peer.write_all(byte);
    });
    net::tcp_stream stream = net::tcp_stream::connect(listener.local_endpoint());
    const auto round_trip = [&](std::byte sent) {
      std::array<std::byte, 1> byte{sent};
      stream.write_all(byte);
      byte[0] = std::byte{0};
      return stream.read(byte) == 1 && byte[0] == sent;
    };
    for (int i = 0; i < 20; ++i) {
      CHECK(round_trip(std::byte{1}));
      const portal open(there.itself);
      if (!round_trip(std::byte{2})) throw first_error();
    }
    stream.close();
    echo.await();
  });
}

TEST_CASE("what a main fiber holds is its own abroad", "[detour]") {
  run(testing::quiet(), [] {
    idle_thread there;
    foreign_loop loop;
    motet::mutex lock;
    shared_mutex shared;
    lock.lock();
    shared.lock();
    {
      const portal open(there.itself);
      CHECK_THROWS_AS(lock.lock(), std::logic_error);
      lock.unlock();
      shared.unlock();
    }
    {
      const portal open(loop);
      lock.lock();
    }
    CHECK_THROWS_AS(spin([&] { lock.unlock(); }).await(), std::logic_error);
    lock.unlock();
  });
}

TEST_CASE("who called a main fiber is not left for good", "[detour]") {
  run_here([] {
    idle_thread there;
    std::optional<bool> refused;
    const auto leaves = [&] {
      const int here = this_thread();
      {
        const portal open(there.itself);
        CHECK(this_thread() == there.number);
      }
      CHECK(this_thread() == here);
      try {
        teleport(there.itself);
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

TEST_CASE("a fiber_local that travels while it goes finds itself", "[detour]") {
  run_here([] {
    idle_thread there;
    restless::to = &there.itself;
    const restless* own = nullptr;
    spin([&] { own = &*restless_one; }).await();
    CHECK(restless::found == own);
    CHECK(restless::made == 1);
  });
}
