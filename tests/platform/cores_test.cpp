// SPDX-License-Identifier: MIT
// Waiting awake: two busy threads do without sleep, an idle one does not do without.
#include "platform/cores.hpp"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <motet/sync/channel.hpp>
#include <motet/sync/event.hpp>
#include <stdexcept>
#include <thread>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

std::chrono::nanoseconds cpu_of_this_thread() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// Returns: what a round trip between two threads takes.
std::chrono::nanoseconds round_trip(const options& how, int rounds) {
  channel<int> there;
  channel<int> back;
  std::thread other([&] {
    run(how, [&] {
      while (auto each = there.pop()) back.push(*each);
    });
  });
  std::chrono::nanoseconds took{};
  run(how, [&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) {
      there.push(i);
      REQUIRE(back.pop() == i);
    }
    took = (std::chrono::steady_clock::now() - begin) / rounds;
    there.close();
  });
  other.join();
  return took;
}

}  // namespace

TEST_CASE("threads that answer one another at once are right, awake and asleep", "[awake]") {
  const auto rounds = static_cast<int>(testing::scaled(100'000, testing::under_tsan ? 500 : 2'000));
  options how;
  for (const auto length : {0us, 100us, 10'000us}) {
    how.busy_wait = length;
    round_trip(how, rounds);
  }
}

TEST_CASE("a thread that waits long sleeps", "[awake]") {
  if (testing::on_sim()) return;
  const auto long_time = std::chrono::milliseconds(testing::scaled(10'000, 500));
  event go;
  std::thread waker([&] {
    std::this_thread::sleep_for(long_time);
    go.set();
  });
  run([&] {
    const auto before = cpu_of_this_thread();
    go.wait();
    CHECK(cpu_of_this_thread() - before < 5ms);
  });
  waker.join();
}

TEST_CASE("who may use one processor waits asleep", "[awake]") {
  std::thread pinned([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(detail::usable_cores() == 1);
  });
  pinned.join();
  CHECK(detail::usable_cores() >= 1);
}

TEST_CASE("threads that are awake are counted", "[awake]") {
  if (testing::on_sim()) return;
  const std::size_t before = detail::awake_threads.load();
  run([&] {
    CHECK(detail::awake_threads.load() == before + 1);
    event asleep;
    std::atomic<std::size_t> seen{0};
    std::thread other([&] {
      run([&] {
        seen = detail::awake_threads.load();
        asleep.wait();
      });
    });
    while (seen == 0) std::this_thread::yield();
    CHECK(seen == before + 2);
    while (detail::awake_threads.load() > before + 1) std::this_thread::yield();
    asleep.set();
    other.join();
    CHECK(detail::awake_threads.load() == before + 1);
  });
  CHECK(detail::awake_threads.load() == before);
}

TEST_CASE("options.busy_wait has limits", "[awake]") {
  options how;
  for (const auto wrong : {-1us, 10'001us}) {
    how.busy_wait = wrong;
    CHECK_THROWS_AS(run(how, [] {}), std::invalid_argument);
  }
}
