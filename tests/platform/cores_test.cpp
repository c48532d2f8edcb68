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
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Returns: what a round trip between two threads takes.
std::chrono::nanoseconds round_trip(const options& settings, int rounds) {
  channel<int> forth;
  channel<int> back;
  std::thread echoer([&] {
    run(settings, [&] {
      while (auto number = forth.pop()) back.push(*number);
    });
  });
  std::chrono::nanoseconds took{};
  run(settings, [&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) {
      forth.push(i);
      REQUIRE(back.pop() == i);
    }
    took = (std::chrono::steady_clock::now() - begin) / rounds;
    forth.close();
  });
  echoer.join();
  return took;
}

}  // namespace

TEST_CASE("options::busy_wait keeps answers between two threads right, awake and asleep",
          "[awake]") {
  const auto rounds = static_cast<int>(testing::scaled(100'000, testing::under_tsan ? 500 : 2'000));
  options settings;
  for (const auto length : {0us, 100us, 10'000us}) {
    settings.busy_wait = length;
    round_trip(settings, rounds);
  }
}

namespace {

/// Returns: the processor time that a wait takes.
std::chrono::nanoseconds cost_of_wait(std::chrono::milliseconds span) {
  event go;
  std::thread waker([&] {
    std::this_thread::sleep_for(span);
    go.set();
  });
  std::chrono::nanoseconds cost{};
  run([&] {
    const auto start = cpu_of_this_thread();
    go.wait();
    cost = cpu_of_this_thread() - start;
  });
  waker.join();
  return cost;
}

}  // namespace

TEST_CASE("options::busy_wait lets a thread that waits long sleep", "[awake]") {
  if (testing::on_sim()) return;
  const auto long_time = std::chrono::milliseconds(testing::scaled(10'000, 500));
  // What a hypervisor takes from the thread counts as its own time.
  auto cost = cost_of_wait(long_time);
  for (int tries = 1; tries < 3 && cost >= 5ms; ++tries) cost = cost_of_wait(long_time);
  CHECK(cost < 5ms);
}

TEST_CASE("usable_cores() is 1 for a thread that may use one processor", "[awake]") {
  std::thread pinned([] {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(::sched_getcpu(), &cpus);
    REQUIRE(::sched_setaffinity(0, sizeof cpus, &cpus) == 0);
    CHECK(detail::usable_cores() == 1);
  });
  pinned.join();
  CHECK(detail::usable_cores() >= 1);
}

TEST_CASE("awake_threads counts the threads that are awake", "[awake]") {
  if (testing::on_sim()) return;
  const std::size_t count_before = detail::awake_threads.load();
  run([&] {
    CHECK(detail::awake_threads.load() == count_before + 1);
    event asleep;
    std::atomic<std::size_t> count{0};
    std::thread second([&] {
      run([&] {
        count = detail::awake_threads.load();
        asleep.wait();
      });
    });
    while (count == 0) std::this_thread::yield();
    CHECK(count == count_before + 2);
    while (detail::awake_threads.load() > count_before + 1) std::this_thread::yield();
    asleep.set();
    second.join();
    CHECK(detail::awake_threads.load() == count_before + 1);
  });
  CHECK(detail::awake_threads.load() == count_before);
}

TEST_CASE("options::busy_wait has limits", "[awake]") {
  options settings;
  for (const auto wrong : {-1us, 10'001us}) {
    settings.busy_wait = wrong;
    CHECK_THROWS_AS(run(settings, [] {}), std::invalid_argument);
  }
}
