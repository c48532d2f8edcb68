// SPDX-License-Identifier: MIT
// The threads that make blocking calls: how many there are, for whom, and in which order.
#include "platform/offload/blocking_pool.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <motet/motet.hpp>
#include <motet/threads/offload.hpp>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/faults.hpp"
#include "catch.hpp"
#include "platform/workers.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::count_workers;
using testing::eventually;
using testing::limited_to;
using testing::until_no_worker_is_left;
namespace threads = motet::detail::blocking_pool;

namespace {

/// So many jobs end only together, which takes as many threads.
void have_met(int count) {
  std::latch meeting(count);
  group callers;
  for (int i = 0; i < count; ++i)
    callers.spin([&] { offload([&] { meeting.arrive_and_wait(); }); });
  callers.await_all();
}

/// Offloads within offloaded work, each time from a runtime of its own.
void nest(int depth) {
  if (depth > 0) offload([depth] { run([depth] { nest(depth - 1); }); });
}

}  // namespace

// The deadlocks come first: they are seen only while the process has no other thread.

TEST_CASE("blocking_pool threads that are idle do not hide a deadlock", "[offload][deadlock]") {
  static constexpr int count = 3;
  threads::idle_time = 10s;
  run([] {
    have_met(count);
    CHECK(count_workers() == count);
    CHECK_THROWS_AS(suspend<int>(), deadlock);
  });
  threads::idle_time = 100ms;
  run([] {
    have_met(count);
    until_no_worker_is_left();
    CHECK_THROWS_AS(suspend<int>(), deadlock);
  });
}

TEST_CASE("offload() whose job is under way is no deadlock", "[offload][deadlock]") {
  run([] {
    channel<int> numbers(1);
    int result = 0;
    auto caller = spin([&] {
      result = offload([] {
        std::this_thread::sleep_for(30ms);
        return 7;
      });
      numbers.push(result);
    });
    CHECK(numbers.pop() == 7);
    caller.await();
  });
}

TEST_CASE("offload() of a thousand fibers shares a few threads", "[offload]") {
  const limited_to limit(4);
  run([] {
    const std::size_t count = testing::scaled(1'000, testing::under_tsan ? 200 : 1'000);
    std::atomic<std::size_t> sum{0};
    std::atomic<int> at_once{0};
    std::atomic<bool> too_many{false};
    group callers;
    for (std::size_t i = 1; i <= count; ++i) {
      callers.spin([&, i] {
        sum += offload([&, i] {
          if (++at_once > 4) too_many = true;
          std::this_thread::yield();
          --at_once;
          return i;
        });
      });
    }
    callers.await_all();
    CHECK(sum == count * (count + 1) / 2);
    CHECK_FALSE(too_many);
  });
}

TEST_CASE("blocking_pool has as many threads as jobs that block at once, and later none",
          "[offload]") {
  until_no_worker_is_left();
  run([] {
    static constexpr int count = 12;
    have_met(count);
    CHECK(count_workers() <= count);
    until_no_worker_is_left();
    CHECK(offload([] { return 3; }) == 3);
  });
}

TEST_CASE("offload() runs jobs that follow one another on one thread", "[offload]") {
  until_no_worker_is_left();
  threads::idle_time = 10s;
  run([] {
    std::set<std::thread::id> ids;
    for (int i = 0; i < 200; ++i) ids.insert(offload([] { return std::this_thread::get_id(); }));
    for (int i = 0; i < 200; ++i) {
      ids.insert(offload_owned([] { return std::this_thread::get_id(); }));
    }
    CHECK(ids.size() == 1);
  });
  threads::idle_time = 0ms;
  run([] { offload([] {}); });
  threads::idle_time = 100ms;
}

TEST_CASE("offload() beyond the limit of threads runs jobs in the order of the calls",
          "[offload]") {
  const limited_to limit(1);
  run([] {
    std::vector<int> order;
    std::atomic<bool> open{false};
    group callers;
    callers.spin([&] { offload([&] { open.wait(false); }); });
    for (int i = 0; i < 5; ++i) {
      callers.spin([&, i] { offload([&, i] { order.push_back(i); }); });
    }
    snooze();
    snooze();
    open = true;
    open.notify_all();
    callers.await_all();
    CHECK(order == std::vector{0, 1, 2, 3, 4});
  });
}

TEST_CASE("offload() within jobs gets threads, however many jobs do that", "[offload][nested]") {
  const limited_to limit(4);
  run([] {
    std::atomic<int> count{0};
    std::latch all_are_in(4);
    group callers;
    for (int i = 0; i < 4; ++i) {
      callers.spin([&] {
        offload([&] {
          all_are_in.arrive_and_wait();
          run([&] { offload([&] { run([&] { offload([&] { ++count; }); }); }); });
        });
      });
    }
    callers.await_all();
    CHECK(count == 4);
  });
}

TEST_CASE("io::read() of a job's fiber does not wait for jobs like it", "[offload][nested]") {
  const limited_to limit(2);
  run([] {
    std::latch all_are_in(2);
    std::atomic<std::size_t> size{0};
    group callers;
    for (int i = 0; i < 2; ++i) {
      callers.spin([&] {
        offload([&] {
          all_are_in.arrive_and_wait();
          run([&] {
            const fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
            std::array<std::byte, 4> magic{};
            size += io::read(file.get(), magic);
          });
        });
      });
    }
    callers.await_all();
    CHECK(size == 8);
  });
}

TEST_CASE("offload() runs first what a job waits for", "[offload][nested]") {
  const limited_to limit(1);
  run([] {
    std::vector<std::string> order;
    std::atomic<bool> open{false};
    group callers;
    callers.spin([&] {
      offload([&] {
        open.wait(false);
        run([&] {
          // The first takes the place of the one that waits; the second is in line with others.
          std::atomic<bool> in_line{false};
          auto first = spin([&] { offload([&] { in_line.wait(false); }); });
          auto second = spin([&] { offload([&] { order.emplace_back("nested"); }); });
          snooze();
          snooze();
          in_line = true;
          in_line.notify_all();
          first.await();
          second.await();
        });
      });
    });
    snooze();
    callers.spin([&] { offload([&] { order.emplace_back("another"); }); });
    snooze();
    open = true;
    open.notify_all();
    callers.await_all();
    CHECK(order == std::vector<std::string>{"nested", "another"});
  });
}

TEST_CASE("offload_owned() jobs that were left do not take threads from others", "[offload]") {
  const limited_to limit(2);
  run([] {
    std::atomic<bool> open{false};
    std::atomic<int> at_work{0};
    std::atomic<int> endings{0};
    {
      group leaving;
      for (int i = 0; i < 2; ++i) {
        leaving.spin([&] {
          offload_owned([&] {
            ++at_work;
            open.wait(false);
            ++endings;
          });
        });
      }
      while (at_work < 2) sleep_for(1ms);
      // One is in line already when they are left.
      auto next = spin([] { return offload([] { return 5; }); });
      snooze();
      leaving.cancel();
      CHECK(next.await() == 5);
    }
    have_met(2);
    open = true;
    open.notify_all();
    eventually([&] { return endings == 2; });
  });
  until_no_worker_is_left();
}

TEST_CASE("offload_owned() counts the thread of a job that was left until the job ends",
          "[offload]") {
  const limited_to limit(1);
  run([] {
    std::atomic<bool> open{false};
    std::atomic<int> at_work{0};
    std::atomic<int> endings{0};
    // Four are all there may be, whoever was left.
    for (int i = 0; i < 4; ++i) {
      auto caller = spin([&] {
        offload_owned([&] {
          ++at_work;
          open.wait(false);
          ++endings;
        });
      });
      while (at_work <= i) sleep_for(1ms);
      caller.cancel();
      snooze();
    }
    CHECK(count_workers() == 4);
    CHECK_FALSE(move_on_after(10ms, [] { offload([] {}); }));
    open = true;
    open.notify_all();
    CHECK(offload([] { return 6; }) == 6);
    eventually([&] { return endings == 4; });
  });
  until_no_worker_is_left();
}

TEST_CASE("dns::resolve() works while jobs have all threads", "[offload][dns]") {
  const limited_to limit(2);
  run([] {
    std::atomic<bool> open{false};
    group callers;
    for (int i = 0; i < 4; ++i) callers.spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    CHECK_FALSE(dns::resolve("localhost", 80).empty());
    open = true;
    open.notify_all();
    callers.await_all();
  });
}

TEST_CASE("offload() throws deadlock if it would wait for all other jobs to end",
          "[offload][nested][deadlock]") {
  const limited_to limit(1);
  run([] {
    nest(4);
    try {
      nest(5);
      FAIL("nothing was thrown");
    } catch (const deadlock& e) {
      CHECK(std::string(e.what()).find("wait for jobs that are offloaded in turn") !=
            std::string::npos);
    }
    nest(4);
  });
}

TEST_CASE("offload() within jobs ends or throws deadlock, at any number and depth",
          "[offload][nested][deadlock]") {
  const limited_to limit(2);
  run([] {
    std::atomic<int> successes{0};
    std::atomic<int> refusals{0};
    group callers;
    for (int i = 0; i < 24; ++i) {
      callers.spin([&, i] {
        try {
          nest(1 + i % 6);
          ++successes;
        } catch (const deadlock&) {
          ++refusals;
        }
      });
    }
    callers.await_all();
    CHECK(successes + refusals == 24);
    CHECK(successes > 0);
  });
}

TEST_CASE("offload() within a job can be interrupted while it waits for a thread",
          "[offload][nested]") {
  const limited_to limit(1);
  run([] {
    std::atomic<bool> called{false};
    offload([&] {
      run([&] {
        std::atomic<bool> open{false};
        auto first = spin([&] { offload([&] { open.wait(false); }); });
        snooze();
        CHECK_FALSE(move_on_after(5ms, [&] { offload([&] { called = true; }); }));
        open = true;
        open.notify_all();
        first.await();
      });
    });
    CHECK_FALSE(called);
    CHECK(offload([] { return 1; }) == 1);
  });
}

TEST_CASE("offload() leaves the signals of started programs as the program has them", "[offload]") {
  run([] {
    const int status = offload([] { return std::system("kill -TERM $$; exit 3"); });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGTERM);
    CHECK(offload([] { return count_workers(); }) >= 1);
  });
}

TEST_CASE("blocking_pool threads take no signal without a job, and have the caller's mask in one",
          "[offload]") {
  run([] {
    offload([] {});  // from here on there is a thread that waits for a job
    sigset_t usr1;
    ::sigemptyset(&usr1);
    ::sigaddset(&usr1, SIGUSR1);
    sigset_t old_mask;
    ::pthread_sigmask(SIG_BLOCK, &usr1, &old_mask);
    ::kill(::getpid(), SIGUSR1);  // would end the process
    const timespec limit{5, 0};
    CHECK(::sigtimedwait(&usr1, nullptr, &limit) == SIGUSR1);
    const auto blocked = [] {
      sigset_t mask;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      return std::array{::sigismember(&mask, SIGUSR1), ::sigismember(&mask, SIGTERM)};
    };
    CHECK(offload(blocked) == std::array{1, 0});
    CHECK(offload_owned(blocked) == std::array{1, 0});
    ::pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
    CHECK(offload(blocked) == std::array{0, 0});
  });
}

#if defined(MOTET_FAULTS)
namespace {

int no_more_threads(const char* call) noexcept {
  return std::string_view(call) == "pthread_create" ? EAGAIN : 0;
}

}  // namespace

TEST_CASE("offload() throws if no thread can start, or waits for a thread that there is",
          "[offload]") {
  until_no_worker_is_left();
  run([] {
    bool started = false;
    detail::faults::choose = no_more_threads;
    CHECK_THROWS_AS(offload([&] { started = true; }), std::system_error);
    CHECK_THROWS_AS(offload_owned([&] { started = true; }), std::system_error);
    detail::faults::choose = nullptr;
    CHECK_FALSE(started);

    std::atomic<bool> open{false};
    group callers;
    callers.spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    detail::faults::choose = no_more_threads;
    callers.spin([&] { offload([&] { started = true; }); });
    snooze();
    CHECK_FALSE(started);
    open = true;
    open.notify_all();
    callers.await_all();
    detail::faults::choose = nullptr;
    CHECK(started);
  });
}

TEST_CASE("io calls block the caller's thread if no thread of the blocking_pool can start",
          "[offload]") {
  until_no_worker_is_left();
  run([] {
    detail::faults::choose = no_more_threads;
    std::size_t names = 0;
    for ([[maybe_unused]] const walk_entry& entry : directory_walk("/proc/self/fd")) ++names;
    detail::faults::choose = nullptr;
    CHECK(names >= 3);
  });
}
#endif
