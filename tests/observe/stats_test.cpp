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
  const process_stats all = stats();
  const auto found = std::find_if(all.threads.begin(), all.threads.end(),
                                  [&](const thread_stats& each) { return each.thread == number; });
  return found == all.threads.end() ? thread_stats{} : *found;
}

/// After a sleep, so that a timer has fired.
thread_stats own_stats() {
  sleep_for(1ms);
  return stats_of(::gettid());
}

}  // namespace

TEST_CASE("a thread counts its fibers, timers, operations and switches", "[stats]") {
  run([] {
    const thread_stats before = own_stats();
    CHECK(before.thread == ::gettid());
    CHECK(before.fibers == 0);
    const auto pair = testing::make_socket_pair();
    group several;
    std::byte one{};
    several.spin([&] { io::recv(pair.first(), {&one, 1}); });
    for (int i = 0; i < 3; ++i) several.spin([] { sleep_for(1h); });
    several.spin([] {}).await();
    const thread_stats during = own_stats();
    CHECK(during.fibers == 4);
    CHECK(during.spun - before.spun == 5);
    CHECK(during.ended - before.ended == 1);
    CHECK(during.timers_armed == 3);
    CHECK(during.stacks_resident >= 4);
    CHECK(during.stacks_resident <= during.stacks_mapped);
    CHECK(during.operations == 1);
    CHECK(during.in_flight[static_cast<std::size_t>(verb::recv)] == 1);
    CHECK(during.polls > before.polls);
    CHECK(during.sleeps > before.sleeps);
    CHECK(during.timers_fired > before.timers_fired);
    several.cancel();
    several.await_all();
    const thread_stats after = own_stats();
    CHECK(after.fibers == 0);
    CHECK(after.operations == 0);
    CHECK(after.timers_armed == 0);
    CHECK(after.stacks_resident <= after.stacks_mapped);
    CHECK(after.spun == after.ended);
  });
}

TEST_CASE("switches are counted, each once", "[stats]") {
  run([] {
    const std::uint64_t before = own_stats().switches;
    constexpr int rounds = 10'000;
    group both;
    for (int i = 0; i < 2; ++i) {
      both.spin([] {
        for (int round = 0; round < rounds; ++round) snooze();
      });
    }
    both.await_all();
    const std::uint64_t passed = own_stats().switches - before;
    CHECK(passed >= 2 * rounds);
    CHECK(passed <= 2 * rounds + 20);
  });
}

TEST_CASE("one in 64 fibers that become runnable tells how long it waited for its turn",
          "[stats]") {
  run([] {
    const std::uint64_t before = own_stats().queue_delay.count();
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
    const std::uint64_t told = delays.count() - before;
    CHECK(told >= 3'200 / 128);
    CHECK(told <= 3'200 / 64 + 1);
    // Behind seven or eight others, each of which takes 20 us at the least.
    CHECK(delays.quantile(0.9) >= 128us);
  });
}

TEST_CASE("a histogram of spans gives the end of a bucket", "[stats]") {
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

TEST_CASE("any thread reads the numbers of all, and those of ended threads stay", "[stats]") {
  const thread_stats before = stats().ended;
  std::atomic<pid_t> other{0};
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    run([&] {
      group several;
      for (int i = 0; i < 5; ++i) {
        several.spin([&] {
          while (!stop) snooze();
        });
      }
      other = ::gettid();
      several.await_all();
    });
  });
  while (other == 0) std::this_thread::sleep_for(1ms);
  thread_stats seen = stats_of(other);
  for (int i = 0; i < 10'000 && seen.switches < 1'000; ++i) {
    std::this_thread::sleep_for(1ms);
    seen = stats_of(other);
  }
  CHECK(seen.switches >= 1'000);
  CHECK(seen.fibers == 5);
  CHECK(seen.spun == 5);
  CHECK(seen.runnable <= 5);
  stop = true;
  busy.join();
  CHECK(stats_of(other).thread == 0);
  const thread_stats after = stats().ended;
  CHECK(after.spun - before.spun == 5);
  CHECK(after.ended - before.ended == 5);
  CHECK(after.fibers == 0);
  CHECK(after.switches - before.switches >= 1'000);
}

TEST_CASE("what a thread did that ended soon is not lost", "[stats]") {
  const thread_stats before = stats().ended;
  for (int i = 0; i < 3; ++i) {
    std::thread([] { run([] { spin([] {}).await(); }); }).join();
  }
  const thread_stats after = stats().ended;
  CHECK(after.spun - before.spun == 3);
  CHECK(after.ended - before.ended == 3);
  CHECK(after.switches > before.switches);
}

TEST_CASE("fibers that one poll has made runnable wait for one another", "[stats]") {
  run([] {
    const std::uint64_t before = own_stats().queue_delay.count();
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
    CHECK(delays.count() > before);
    CHECK(delays.quantile(1) >= 512us);
  });
}

TEST_CASE("mail and offload threads are counted", "[stats]") {
  run(testing::quiet(), [] {
    const std::uint64_t before = own_stats().mail;
    suspend_with<int>([](resumer<int> resume) {
      std::thread([resume = std::move(resume)]() mutable { resume(1); }).detach();
    });
    offload([] {});
    CHECK(own_stats().mail > before);
    CHECK(stats().offload_threads >= 1);
    CHECK(stats().offload_queued == 0);
  });
}

TEST_CASE("each verb has a name of its own", "[stats]") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < verbs; ++i) names.insert(name_of(static_cast<verb>(i)));
  CHECK(names.size() == verbs);
  CHECK(name_of(verb::wait_fd) == "wait_fd");
  CHECK(name_of(verb::getdents) == "getdents");
}
