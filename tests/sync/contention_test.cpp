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

TEST_CASE("channel passes items of three threads to 16 interrupted consumers once each, in order",
          "[channel]") {
  constexpr int producers = 3;
  const int per_producer = many(200'000) / producers;
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{8}}) {
    channel<item> items(capacity);
    const auto produce = [&](int producer) {
      for (int i = 0; i < per_producer; ++i) items.push({producer, i});
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        run(disturbed(), [&] {
          // Interrupted as well: a push that throws has not happened.
          chaos disorder(static_cast<unsigned>(i));
          group workers;
          bool finished = false;
          int next = 0;
          disorder.spin_stubborn(workers, [&] {
            if (next == per_producer) return false;
            items.push({i, next});
            ++next;
            return true;
          });
          auto disturber = spin([&] { disorder.run_until(finished); });
          workers.await_all();
          finished = true;
          disturber.await();
        });
      });
    }
    threads.emplace_back([&] { produce(2); });

    std::vector<item> popped;
    run(disturbed(), [&] {
      chaos disorder(17);
      group consumers;
      bool finished = false;
      for (int i = 0; i < 16; ++i) {
        disorder.spin_stubborn(consumers, [&] {
          const std::optional<item> next = items.pop();
          if (next) popped.push_back(*next);
          if (popped.size() == static_cast<std::size_t>(producers * per_producer)) items.close();
          return next.has_value();
        });
      }
      auto disturber = spin([&] { disorder.run_until(finished); });
      consumers.await_all();
      finished = true;
      disturber.await();
      CHECK(disorder.interruptions > 0);
    });
    for (std::thread& each_thread : threads) each_thread.join();

    REQUIRE(popped.size() == static_cast<std::size_t>(producers * per_producer));
    std::vector<std::vector<bool>> seen(producers,
                                        std::vector<bool>(static_cast<std::size_t>(per_producer)));
    bool once = true;
    for (const item& entry : popped) {
      auto place = seen[static_cast<std::size_t>(entry.producer)].begin() + entry.number;
      once = once && !*place;
      *place = true;
    }
    CHECK(once);
  }
}

TEST_CASE("channel connects threads on different backends", "[channel]") {
  const int per_producer = many(100'000);
  channel<int> requests(8);
  channel<int> back(8);
  options libev;
  libev.backend = "libev";
  try {
    run(libev, [] {});
  } catch (const std::invalid_argument&) {
    return;  // this build has none
  }
  std::thread remote([&] {
    run(libev, [&] {
      for (const int n : requests) back.push(n);
      back.close();
    });
  });
  long sum = 0;
  run([&] {
    auto sender = spin([&] {
      for (int i = 1; i <= per_producer; ++i) requests.push(i);
      requests.close();
    });
    for (const int n : back) sum += n;
    sender.await();
  });
  remote.join();
  CHECK(sum == static_cast<long>(per_producer) * (per_producer + 1) / 2);
}

TEST_CASE("channel: one consumer gets the items of each producer in order", "[channel]") {
  const int per_producer = many(100'000);
  channel<item> items(4);
  std::thread plain([&] {
    for (int i = 0; i < per_producer; ++i) items.push({0, i});
  });
  std::thread remote([&] {
    run([&] {
      for (int i = 0; i < per_producer; ++i) items.push({1, i});
    });
  });
  std::array<int, 2> next{};
  bool ordered = true;
  run(disturbed(), [&] {
    chaos disorder(3);
    group members;
    bool finished = false;
    disorder.spin_stubborn(members, [&] {
      if (next[0] + next[1] == 2 * per_producer) return false;
      const item item_popped = items.pop().value();
      ordered =
          ordered && next[static_cast<std::size_t>(item_popped.producer)]++ == item_popped.number;
      return true;
    });
    auto disturber = spin([&] { disorder.run_until(finished); });
    members.await_all();
    finished = true;
    disturber.await();
  });
  plain.join();
  remote.join();
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
      bool finished = false;
      std::vector<int> remaining(fibers, rounds);
      for (int& counter : remaining) {
        disorder.spin_stubborn(workers, [&] {
          if (counter == 0) return false;
          work();
          --counter;
          return true;
        });
      }
      auto disturber = spin([&] { disorder.run_until(finished); });
      workers.await_all();
      finished = true;
      disturber.await();
    });
  };
  std::thread remote([&] { on_fibers(1); });
  std::thread plain([&] {
    for (int i = 0; i < rounds; ++i) work();
  });
  on_fibers(2);
  remote.join();
  plain.join();
}

constexpr int workers_in_crowd = 9;

}  // namespace

TEST_CASE("mutex excludes under contention", "[mutex]") {
  const int rounds = many(10'000);
  mutex lock;
  long count = 0;
  bool inside = false;
  crowd(rounds, [&] {
    const std::lock_guard guard(lock);
    REQUIRE(!std::exchange(inside, true));
    ++count;
    inside = false;
  });
  CHECK(count == static_cast<long>(rounds) * workers_in_crowd);
}

TEST_CASE("recursive_mutex excludes under contention", "[mutex]") {
  const int rounds = many(5'000);
  recursive_mutex lock;
  long count = 0;
  crowd(rounds, [&] {
    const std::lock_guard guard(lock);
    const std::lock_guard again(lock);
    ++count;
  });
  CHECK(count == static_cast<long>(rounds) * workers_in_crowd);
}

TEST_CASE("shared_mutex lets readers in together and writers alone", "[mutex]") {
  const int rounds = many(5'000);
  shared_mutex lock;
  long writes = 0;
  std::atomic<int> readers{0};
  std::atomic<long> reads{0};
  crowd(rounds, [&] {
    {
      const std::shared_lock guard(lock);
      ++readers;
      reads += writes >= 0 ? 1 : 0;
      --readers;
    }
    const std::unique_lock guard(lock);
    REQUIRE(readers == 0);
    ++writes;
  });
  CHECK(writes == static_cast<long>(rounds) * workers_in_crowd);
}

TEST_CASE("condition_variable misses no waiter under contention", "[condition]") {
  const int rounds = many(5'000);
  mutex lock;
  condition_variable condition;
  int free = 2;
  int peak = 0;
  crowd(rounds, [&] {
    {
      std::unique_lock guard(lock);
      condition.wait(guard, [&] { return free > 0; });
      peak = std::max(peak, 2 - --free);
    }
    shield([&] {
      const std::lock_guard guard(lock);
      ++free;
    });
    condition.notify_one();
  });
  CHECK(peak <= 2);
  CHECK(free == 2);
}

TEST_CASE("semaphore never gives more permits than it has, and loses none", "[semaphore]") {
  const int rounds = many(5'000);
  semaphore permits(3);
  std::atomic<int> permits_taken{0};
  std::atomic<int> peak{0};
  crowd(rounds, [&] {
    permits.acquire();
    const int level = ++permits_taken;
    for (int highest = peak; highest < level && !peak.compare_exchange_weak(highest, level);) {
    }
    --permits_taken;
    permits.release();
  });
  CHECK(peak <= 3);
  CHECK(permits.try_acquire(3));
}

TEST_CASE("resource_pool loses no slot under contention", "[pool]") {
  const int rounds = many(10'000);
  std::atomic<int> slots_made{0};
  resource_pool<int> pool(
      2,
      [&] {
        if (++slots_made % 7 == 0) throw std::runtime_error("cannot be made");
        return 1;
      },
      [&](int& uses) { return uses < 100; });
  crowd(rounds, [&] {
    try {
      auto slot = pool.acquire();
      if (++*slot % 13 == 0) slot.discard();
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

TEST_CASE("rate_limiter: all fibers together keep the rate", "[rate]") {
  if (testing::on_sim()) return;  // each thread has a time of its own there
  const int rounds = many(2'000);
  rate_limiter rate(100'000, 1s, 10);
  const auto begin = clock::now();
  crowd(rounds, [&] { rate.acquire(); });
  CHECK(clock::now() - begin >= (workers_in_crowd * rounds - 10) * 10us);
}

TEST_CASE("event::set() reaches every thread, whenever it comes", "[event]") {
  const int rounds = many(2'000);
  for (int i = 0; i < rounds; ++i) {
    event go;
    std::atomic<int> passes{0};
    std::thread plain([&] {
      go.wait();
      ++passes;
    });
    std::thread remote([&] {
      run([&] {
        group two;
        for (int k = 0; k < 2; ++k) {
          two.spin([&] {
            go.wait();
            ++passes;
          });
        }
        two.await_all();
      });
    });
    go.set();
    plain.join();
    remote.join();
    REQUIRE(passes == 3);
  }
}

TEST_CASE("notification: each effective call ended one wait", "[notification]") {
  const int rounds = many(10'000);
  notification news;
  std::thread remote([&] {
    run([&] {
      for (int i = 0; i < rounds; ++i) news.wait();
    });
  });
  // Only a call that somebody hears counts.
  for (int heard = 0; heard < rounds;) heard += news.notify_one() ? 1 : 0;
  remote.join();
  CHECK_FALSE(news.notify_one());
}

TEST_CASE("promise: if two threads fulfil it one value counts, and all see the same", "[future]") {
  const int rounds = many(4'000);
  for (int i = 0; i < rounds; ++i) {
    promise<int> answer;
    std::vector<future<int>> copies(3, answer.get_future());
    std::atomic<int> won{0};
    const auto look = [](const future<int>& copy) {
      try {
        return copy.get();
      } catch (const std::runtime_error&) {
        return -1;
      }
    };
    std::thread value([&] { won += answer.set_value(1) ? 1 : 0; });
    std::thread error([&] {
      won += answer.set_exception(std::make_exception_ptr(std::runtime_error("no"))) ? 1 : 0;
    });
    int local_count = 0;
    int remote_count = 0;
    std::thread plain([&] { remote_count = look(copies[0]); });
    run([&] { local_count = look(copies[1]); });
    for (std::thread* thread : {&value, &error, &plain}) thread->join();
    REQUIRE(won == 1);
    REQUIRE(local_count == remote_count);
    REQUIRE(local_count == look(copies[2]));
  }
}

TEST_CASE("actor receives each sender's messages in order", "[actor]") {
  const int per_sender = many(40'000);
  std::array<int, 3> next{};
  bool ordered = true;
  run([&] {
    actor<item> listener([&](actor<item>::inbox& messages) {
      for (int remaining = 3 * per_sender; remaining > 0; --remaining) {
        const item message = messages.receive();
        ordered = ordered && next[static_cast<std::size_t>(message.producer)]++ == message.number;
      }
    });
    std::thread plain([&] {
      for (int i = 0; i < per_sender; ++i) listener.send({0, i});
    });
    std::thread remote([&] {
      run([&] {
        for (int i = 0; i < per_sender; ++i) listener.send({1, i});
      });
    });
    for (int i = 0; i < per_sender; ++i) {
      listener.send({2, i});
      if (i % 64 == 0) snooze();
    }
    listener.await();
    plain.join();
    remote.join();
    CHECK_THROWS_AS(listener.send({0, 0}), channel_closed);
  });
  CHECK(ordered);
}
