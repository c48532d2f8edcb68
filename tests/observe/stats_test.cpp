// SPDX-License-Identifier: MIT
// Numbers about threads: what they count, from which thread they are read, and what stays of a
// thread that has ended.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <motet/observe/stats.hpp>
#include <set>
#include <string>
#include <thread>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// Returns: the numbers of the thread `number`.
thread_stats stats_of(pid_t number) {
  const process_stats process = stats();
  const auto entry =
      std::find_if(process.threads.begin(), process.threads.end(),
                   [&](const thread_stats& thread) { return thread.thread == number; });
  return entry == process.threads.end() ? thread_stats{} : *entry;
}

/// After a sleep, so that a timer has fired.
thread_stats own_stats() {
  sleep_for(1ms);
  return stats_of(::gettid());
}

}  // namespace

TEST_CASE("stats() counts a thread's fibers, timers, operations and switches", "[stats]") {
  run([] {
    const thread_stats start = own_stats();
    CHECK(start.thread == ::gettid());
    CHECK(start.fibers == 0);
    const auto pair = testing::make_socket_pair();
    group several;
    std::byte byte{};
    several.spin([&] { io::recv(pair.first(), {&byte, 1}); });
    for (int i = 0; i < 3; ++i) several.spin([] { sleep_for(1h); });
    several.spin([] {}).await();
    const thread_stats middle = own_stats();
    CHECK(middle.fibers == 4);
    CHECK(middle.spun - start.spun == 5);
    CHECK(middle.ended - start.ended == 1);
    CHECK(middle.timers_armed == 3);
    CHECK(middle.stacks_resident >= 4);
    CHECK(middle.stacks_resident <= middle.stacks_mapped);
    CHECK(middle.operations == 1);
    CHECK(middle.in_flight[static_cast<std::size_t>(verb::recv)] == 1);
    CHECK(middle.polls > start.polls);
    CHECK(middle.sleeps > start.sleeps);
    CHECK(middle.timers_fired > start.timers_fired);
    several.cancel();
    several.await_all();
    const thread_stats finish = own_stats();
    CHECK(finish.fibers == 0);
    CHECK(finish.operations == 0);
    CHECK(finish.timers_armed == 0);
    CHECK(finish.stacks_resident <= finish.stacks_mapped);
    CHECK(finish.spun == finish.ended);
  });
}

TEST_CASE("stats() counts each switch once", "[stats]") {
  run([] {
    const std::uint64_t start = own_stats().switches;
    constexpr int rounds = 10'000;
    group fibers;
    for (int i = 0; i < 2; ++i) {
      fibers.spin([] {
        for (int round = 0; round < rounds; ++round) snooze();
      });
    }
    fibers.await_all();
    const std::uint64_t switches = own_stats().switches - start;
    CHECK(switches >= 2 * rounds);
    CHECK(switches <= 2 * rounds + 20);
  });
}

TEST_CASE("stats() counts each switch once among many fibers, and measures their delays",
          "[stats]") {
  run([] {
    constexpr std::uint64_t many =
        4'500;  // more than the queue links, so that awaited ones overtake
    constexpr std::uint64_t rounds = 20;
    const thread_stats start = own_stats();
    group fibers;
    for (std::uint64_t i = 0; i < many; ++i) {
      fibers.spin([] {
        for (std::uint64_t round = 0; round < rounds; ++round) snooze();
      });
    }
    constexpr std::uint64_t awaited = 500;
    for (std::uint64_t i = 0; i < awaited; ++i) spin([] {}).await();
    fibers.await_all();
    const thread_stats finish = own_stats();
    const std::uint64_t switches = finish.switches - start.switches;
    // A snoozer switches once more when it ends; an awaited fiber is switched to and from.
    CHECK(switches >= many * (rounds + 1));
    CHECK(switches <= many * (rounds + 1) + 2 * awaited + 20);
    CHECK(finish.queue_delay.count() > start.queue_delay.count());
    CHECK(finish.queue_delay.quantile(1) < 1min);
  });
}

TEST_CASE("stats(): one in 64 runnable fibers records how long it waited for its turn", "[stats]") {
  run([] {
    const std::uint64_t start = own_stats().queue_delay.count();
    group several;
    for (int i = 0; i < 8; ++i) {
      several.spin([] {
        for (int round = 0; round < 400; ++round) {
          const auto end = std::chrono::steady_clock::now() + 20us;
          while (std::chrono::steady_clock::now() < end) {
          }
          snooze();
        }
      });
    }
    several.await_all();
    const span_histogram delays = own_stats().queue_delay;
    const std::uint64_t recorded = delays.count() - start;
    CHECK(recorded >= 3'200 / 128);
    CHECK(recorded <= 3'200 / 64 + 1);
    // Behind seven or eight others, each of which takes 20 us at the least.
    CHECK(delays.quantile(0.9) >= 128us);
  });
}

TEST_CASE("span_histogram::quantile() is the end of a bucket", "[stats]") {
  span_histogram spans;
  CHECK(spans.count() == 0);
  CHECK(spans.quantile(0.5) == 0ns);
  spans.buckets[0] = 1;
  spans.buckets[9] = 98;
  spans.buckets[63] = 1;
  CHECK(spans.count() == 100);
  CHECK(spans.quantile(0) == 2ns);
  CHECK(spans.quantile(0.01) == 2ns);
  CHECK(spans.quantile(0.5) == 1'024ns);
  CHECK(spans.quantile(0.99) == 1'024ns);
  CHECK(spans.quantile(1) == std::chrono::nanoseconds::max());
}

TEST_CASE("stats() shows all threads to any thread, and keeps the numbers of ended ones",
          "[stats]") {
  const thread_stats start = stats().ended;
  std::atomic<pid_t> thread_id{0};
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    run([&] {
      group several;
      for (int i = 0; i < 5; ++i) {
        several.spin([&] {
          while (!stop) snooze();
        });
      }
      thread_id = ::gettid();
      several.await_all();
    });
  });
  while (thread_id == 0) std::this_thread::sleep_for(1ms);
  thread_stats current_stats = stats_of(thread_id);
  for (int i = 0; i < 10'000 && current_stats.switches < 1'000; ++i) {
    std::this_thread::sleep_for(1ms);
    current_stats = stats_of(thread_id);
  }
  CHECK(current_stats.switches >= 1'000);
  CHECK(current_stats.fibers == 5);
  CHECK(current_stats.spun == 5);
  CHECK(current_stats.runnable <= 5);
  stop = true;
  busy.join();
  CHECK(stats_of(thread_id).thread == 0);
  const thread_stats finish = stats().ended;
  CHECK(finish.spun - start.spun == 5);
  CHECK(finish.ended - start.ended == 5);
  CHECK(finish.fibers == 0);
  CHECK(finish.switches - start.switches >= 1'000);
}

TEST_CASE("stats() keeps the numbers of a thread that ended soon", "[stats]") {
  const thread_stats start = stats().ended;
  for (int i = 0; i < 3; ++i) {
    std::thread([] { run([] { spin([] {}).await(); }); }).join();
  }
  const thread_stats finish = stats().ended;
  CHECK(finish.spun - start.spun == 3);
  CHECK(finish.ended - start.ended == 3);
  CHECK(finish.switches > start.switches);
}

TEST_CASE("stats(): fibers that one poll has made runnable delay each other", "[stats]") {
  run([] {
    const std::uint64_t start = own_stats().queue_delay.count();
    group several;
    for (int i = 0; i < 10; ++i) {
      several.spin([] {
        for (int round = 0; round < 100; ++round) {
          sleep_for(1ms);
          const auto end = std::chrono::steady_clock::now() + 300us;
          while (std::chrono::steady_clock::now() < end) {
          }
        }
      });
    }
    several.await_all();
    const span_histogram delays = own_stats().queue_delay;
    CHECK(delays.count() > start);
    CHECK(delays.quantile(1) >= 512us);
  });
}

TEST_CASE("stats() counts mail and offload threads", "[stats]") {
  run(testing::quiet(), [] {
    const std::uint64_t start = own_stats().mail;
    suspend_with<int>([](resumer<int> resume) {
      std::thread([resume = std::move(resume)]() mutable { resume(1); }).detach();
    });
    offload([] {});
    CHECK(own_stats().mail > start);
    CHECK(stats().offload_threads >= 1);
    CHECK(stats().offload_queued == 0);
  });
}

TEST_CASE("name_of(verb) differs for each verb", "[stats]") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < verbs; ++i) names.insert(name_of(static_cast<verb>(i)));
  CHECK(names.size() == verbs);
  CHECK(name_of(verb::wait_fd) == "wait_fd");
  CHECK(name_of(verb::getdents) == "getdents");
}
