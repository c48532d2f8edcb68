// SPDX-License-Identifier: MIT
// The shared primitives between fibers of several threads and plain threads, interrupted at random:
// nothing lost, nothing doubled, nobody left waiting.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <motet/sync/actor.hpp>
#include <motet/sync/channel.hpp>
#include <motet/sync/condition_variable.hpp>
#include <motet/sync/event.hpp>
#include <motet/sync/future.hpp>
#include <motet/sync/notification.hpp>
#include <motet/sync/rate_limiter.hpp>
#include <motet/sync/recursive_mutex.hpp>
#include <motet/sync/resource_pool.hpp>
#include <motet/sync/semaphore.hpp>
#include <motet/sync/shared_mutex.hpp>
#include <mutex>
#include <optional>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "sync/chaos.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::chaos;
using testing::disturbed;
using testing::many;

namespace {

struct item {
  int producer;
  int number;
};

}  // namespace

TEST_CASE("items of three threads reach 16 interrupted consumers once each, in order",
          "[channel]") {
  constexpr int producers = 3;
  const int each = many(200'000) / producers;
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{8}}) {
    channel<item> items(capacity);
    const auto produce = [&](int producer) {
      for (int i = 0; i < each; ++i) items.push({producer, i});
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        run(disturbed(), [&] {
          // Interrupted as well: a push that throws has not happened.
          chaos disorder(static_cast<unsigned>(i));
          group workers;
          bool over = false;
          int next = 0;
          disorder.spin_stubborn(workers, [&] {
            if (next == each) return false;
            items.push({i, next});
            ++next;
            return true;
          });
          auto disturber = spin([&] { disorder.run_until(over); });
          workers.await_all();
          over = true;
          disturber.await();
        });
      });
    }
    threads.emplace_back([&] { produce(2); });

    std::vector<item> got;
    run(disturbed(), [&] {
      chaos disorder(17);
      group consumers;
      bool over = false;
      for (int i = 0; i < 16; ++i) {
        disorder.spin_stubborn(consumers, [&] {
          const std::optional<item> next = items.pop();
          if (next) got.push_back(*next);
          if (got.size() == static_cast<std::size_t>(producers * each)) items.close();
          return next.has_value();
        });
      }
      auto disturber = spin([&] { disorder.run_until(over); });
      consumers.await_all();
      over = true;
      disturber.await();
      CHECK(disorder.interrupted > 0);
    });
    for (std::thread& each_thread : threads) each_thread.join();

    REQUIRE(got.size() == static_cast<std::size_t>(producers * each));
    std::vector<std::vector<bool>> seen(producers,
                                        std::vector<bool>(static_cast<std::size_t>(each)));
    bool once = true;
    for (const item& one : got) {
      auto place = seen[static_cast<std::size_t>(one.producer)].begin() + one.number;
      once = once && !*place;
      *place = true;
    }
    CHECK(once);
  }
}

TEST_CASE("threads on different backends talk to each other", "[channel]") {
  const int each = many(100'000);
  channel<int> there(8);
  channel<int> back(8);
  options libev;
  libev.backend = "libev";
  try {
    run(libev, [] {});
  } catch (const std::invalid_argument&) {
    return;  // this build has none
  }
  std::thread other([&] {
    run(libev, [&] {
      for (const int n : there) back.push(n);
      back.close();
    });
  });
  long sum = 0;
  run([&] {
    auto sender = spin([&] {
      for (int i = 1; i <= each; ++i) there.push(i);
      there.close();
    });
    for (const int n : back) sum += n;
    sender.await();
  });
  other.join();
  CHECK(sum == static_cast<long>(each) * (each + 1) / 2);
}

TEST_CASE("one consumer gets the items of each producer in order", "[channel]") {
  const int each = many(100'000);
  channel<item> items(4);
  std::thread plain([&] {
    for (int i = 0; i < each; ++i) items.push({0, i});
  });
  std::thread other([&] {
    run([&] {
      for (int i = 0; i < each; ++i) items.push({1, i});
    });
  });
  std::array<int, 2> next{};
  bool ordered = true;
  run(disturbed(), [&] {
    chaos disorder(3);
    group one;
    bool over = false;
    disorder.spin_stubborn(one, [&] {
      if (next[0] + next[1] == 2 * each) return false;
      const item got = items.pop().value();
      ordered = ordered && next[static_cast<std::size_t>(got.producer)]++ == got.number;
      return true;
    });
    auto disturber = spin([&] { disorder.run_until(over); });
    one.await_all();
    over = true;
    disturber.await();
  });
  plain.join();
  other.join();
  CHECK(ordered);
}

namespace {

/// Fibers of this thread and of another, all interrupted at random, and a plain thread, do `work`
/// (called with a number from 0) `rounds` times each.
template <typename Work>
void crowd(int rounds, Work work) {
  constexpr int fibers = 4;
  const auto on_fibers = [&](unsigned seed) {
    run(disturbed(), [&] {
      chaos disorder(seed);
      group workers;
      bool over = false;
      std::vector<int> left(fibers, rounds);
      for (int& mine : left) {
        disorder.spin_stubborn(workers, [&] {
          if (mine == 0) return false;
          work();
          --mine;
          return true;
        });
      }
      auto disturber = spin([&] { disorder.run_until(over); });
      workers.await_all();
      over = true;
      disturber.await();
    });
  };
  std::thread other([&] { on_fibers(1); });
  std::thread plain([&] {
    for (int i = 0; i < rounds; ++i) work();
  });
  on_fibers(2);
  other.join();
  plain.join();
}

constexpr int workers_in_crowd = 9;

}  // namespace

TEST_CASE("a mutex excludes", "[mutex]") {
  const int rounds = many(10'000);
  mutex lock;
  long count = 0;
  bool inside = false;
  crowd(rounds, [&] {
    const std::lock_guard in(lock);
    REQUIRE(!std::exchange(inside, true));
    ++count;
    inside = false;
  });
  CHECK(count == static_cast<long>(rounds) * workers_in_crowd);
}

TEST_CASE("a recursive mutex excludes", "[mutex]") {
  const int rounds = many(5'000);
  recursive_mutex lock;
  long count = 0;
  crowd(rounds, [&] {
    const std::lock_guard in(lock);
    const std::lock_guard again(lock);
    ++count;
  });
  CHECK(count == static_cast<long>(rounds) * workers_in_crowd);
}

TEST_CASE("a shared mutex lets readers in together and writers alone", "[mutex]") {
  const int rounds = many(5'000);
  shared_mutex lock;
  long written = 0;
  std::atomic<int> readers{0};
  std::atomic<long> read{0};
  crowd(rounds, [&] {
    {
      const std::shared_lock in(lock);
      ++readers;
      read += written >= 0 ? 1 : 0;
      --readers;
    }
    const std::unique_lock in(lock);
    REQUIRE(readers == 0);
    ++written;
  });
  CHECK(written == static_cast<long>(rounds) * workers_in_crowd);
}

TEST_CASE("a condition variable misses nobody", "[condition]") {
  const int rounds = many(5'000);
  mutex lock;
  condition_variable changed;
  int free = 2;
  int most = 0;
  crowd(rounds, [&] {
    {
      std::unique_lock in(lock);
      changed.wait(in, [&] { return free > 0; });
      most = std::max(most, 2 - --free);
    }
    shield([&] {
      const std::lock_guard in(lock);
      ++free;
    });
    changed.notify_one();
  });
  CHECK(most <= 2);
  CHECK(free == 2);
}

TEST_CASE("a semaphore never gives more permits than it has, and loses none", "[semaphore]") {
  const int rounds = many(5'000);
  semaphore permits(3);
  std::atomic<int> taken{0};
  std::atomic<int> most{0};
  crowd(rounds, [&] {
    permits.acquire();
    const int now = ++taken;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    --taken;
    permits.release();
  });
  CHECK(most <= 3);
  CHECK(permits.try_acquire(3));
}

TEST_CASE("a resource pool loses no slot", "[pool]") {
  const int rounds = many(10'000);
  std::atomic<int> made{0};
  resource_pool<int> pool(
      2,
      [&] {
        if (++made % 7 == 0) throw std::runtime_error("cannot be made");
        return 1;
      },
      [&](int& uses) { return uses < 100; });
  crowd(rounds, [&] {
    try {
      auto one = pool.acquire();
      if (++*one % 13 == 0) one.discard();
    } catch (const std::runtime_error&) {
      // Next time.
    }
  });
  const auto until_there = [&] {
    for (;;) {
      try {
        return pool.acquire();
      } catch (const std::runtime_error&) {
        continue;
      }
    }
  };
  auto first = until_there();
  auto second = until_there();
  CHECK(*first + *second > 0);
}

TEST_CASE("a rate is kept by all together", "[rate]") {
  if (testing::on_sim()) return;  // each thread has a time of its own there
  const int rounds = many(2'000);
  rate_limiter rate(100'000, 1s, 10);
  const auto begin = clock::now();
  crowd(rounds, [&] { rate.acquire(); });
  CHECK(clock::now() - begin >= (workers_in_crowd * rounds - 10) * 10us);
}

TEST_CASE("an event reaches every thread, whenever it is set", "[event]") {
  const int rounds = many(2'000);
  for (int i = 0; i < rounds; ++i) {
    event go;
    std::atomic<int> through{0};
    std::thread plain([&] {
      go.wait();
      ++through;
    });
    std::thread other([&] {
      run([&] {
        group two;
        for (int k = 0; k < 2; ++k) {
          two.spin([&] {
            go.wait();
            ++through;
          });
        }
        two.await_all();
      });
    });
    go.set();
    plain.join();
    other.join();
    REQUIRE(through == 3);
  }
}

TEST_CASE("each notification that somebody heard ended one wait", "[notification]") {
  const int rounds = many(10'000);
  notification called;
  std::thread other([&] {
    run([&] {
      for (int i = 0; i < rounds; ++i) called.wait();
    });
  });
  // Only a call that somebody hears counts.
  for (int heard = 0; heard < rounds;) heard += called.notify_one() ? 1 : 0;
  other.join();
  CHECK_FALSE(called.notify_one());
}

TEST_CASE("of promises kept twice by two threads one counts, and all agree", "[future]") {
  const int rounds = many(4'000);
  for (int i = 0; i < rounds; ++i) {
    promise<int> told;
    std::vector<future<int>> copies(3, told.get_future());
    std::atomic<int> won{0};
    const auto look = [](const future<int>& copy) {
      try {
        return copy.get();
      } catch (const std::runtime_error&) {
        return -1;
      }
    };
    std::thread value([&] { won += told.set_value(1) ? 1 : 0; });
    std::thread error([&] {
      won += told.set_exception(std::make_exception_ptr(std::runtime_error("no"))) ? 1 : 0;
    });
    int here = 0;
    int there = 0;
    std::thread plain([&] { there = look(copies[0]); });
    run([&] { here = look(copies[1]); });
    for (std::thread* each : {&value, &error, &plain}) each->join();
    REQUIRE(won == 1);
    REQUIRE(here == there);
    REQUIRE(here == look(copies[2]));
  }
}

TEST_CASE("an actor hears everybody, each in order", "[actor]") {
  const int each = many(40'000);
  std::array<int, 3> next{};
  bool ordered = true;
  run([&] {
    actor<item> listener([&](actor<item>::inbox& messages) {
      for (int left = 3 * each; left > 0; --left) {
        const item got = messages.receive();
        ordered = ordered && next[static_cast<std::size_t>(got.producer)]++ == got.number;
      }
    });
    std::thread plain([&] {
      for (int i = 0; i < each; ++i) listener.send({0, i});
    });
    std::thread other([&] {
      run([&] {
        for (int i = 0; i < each; ++i) listener.send({1, i});
      });
    });
    for (int i = 0; i < each; ++i) {
      listener.send({2, i});
      if (i % 64 == 0) snooze();
    }
    listener.await();
    plain.join();
    other.join();
    CHECK_THROWS_AS(listener.send({0, 0}), channel_closed);
  });
  CHECK(ordered);
}
