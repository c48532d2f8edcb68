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
  std::latch met(count);
  group all;
  for (int i = 0; i < count; ++i) all.spin([&] { offload([&] { met.arrive_and_wait(); }); });
  all.await_all();
}

/// Offloads within offloaded work, each time from a runtime of its own.
void nest(int depth) {
  if (depth > 0) offload([depth] { run([depth] { nest(depth - 1); }); });
}

}  // namespace

// The deadlocks come first: they are seen only while the process has no other thread.

TEST_CASE("idle threads do not keep a deadlock from being seen", "[offload][deadlock]") {
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

TEST_CASE("a job that is under way is no deadlock", "[offload][deadlock]") {
  run([] {
    channel<int> numbers(1);
    int got = 0;
    auto other = spin([&] {
      got = offload([] {
        std::this_thread::sleep_for(30ms);
        return 7;
      });
      numbers.push(got);
    });
    CHECK(numbers.pop() == 7);
    other.await();
  });
}

TEST_CASE("a thousand fibers share a few threads", "[offload]") {
  const limited_to four(4);
  run([] {
    const std::size_t count = testing::scaled(1'000, testing::under_tsan ? 200 : 1'000);
    std::atomic<std::size_t> sum{0};
    std::atomic<int> at_once{0};
    std::atomic<bool> too_many{false};
    group all;
    for (std::size_t i = 1; i <= count; ++i) {
      all.spin([&, i] {
        sum += offload([&, i] {
          if (++at_once > 4) too_many = true;
          std::this_thread::yield();
          --at_once;
          return i;
        });
      });
    }
    all.await_all();
    CHECK(sum == count * (count + 1) / 2);
    CHECK_FALSE(too_many);
  });
}

TEST_CASE("there are as many threads as jobs that block at once, and later none", "[offload]") {
  until_no_worker_is_left();
  run([] {
    static constexpr int count = 12;
    have_met(count);
    CHECK(count_workers() <= count);
    until_no_worker_is_left();
    CHECK(offload([] { return 3; }) == 3);
  });
}

TEST_CASE("jobs that follow one another are done by one thread", "[offload]") {
  until_no_worker_is_left();
  threads::idle_time = 10s;
  run([] {
    std::set<std::thread::id> seen;
    for (int i = 0; i < 200; ++i) seen.insert(offload([] { return std::this_thread::get_id(); }));
    for (int i = 0; i < 200; ++i) {
      seen.insert(offload_owned([] { return std::this_thread::get_id(); }));
    }
    CHECK(seen.size() == 1);
  });
  threads::idle_time = 0ms;
  run([] { offload([] {}); });
  threads::idle_time = 100ms;
}

TEST_CASE("beyond the limit jobs are done in the order in which they came", "[offload]") {
  const limited_to one(1);
  run([] {
    std::vector<int> order;
    std::atomic<bool> open{false};
    group all;
    all.spin([&] { offload([&] { open.wait(false); }); });
    for (int i = 0; i < 5; ++i) {
      all.spin([&, i] { offload([&, i] { order.push_back(i); }); });
    }
    snooze();
    snooze();
    open = true;
    open.notify_all();
    all.await_all();
    CHECK(order == std::vector{0, 1, 2, 3, 4});
  });
}

TEST_CASE("jobs that offload in turn get threads, however many do", "[offload][nested]") {
  const limited_to four(4);
  run([] {
    std::atomic<int> done{0};
    std::latch all_are_in(4);
    group all;
    for (int i = 0; i < 4; ++i) {
      all.spin([&] {
        offload([&] {
          all_are_in.arrive_and_wait();
          run([&] { offload([&] { run([&] { offload([&] { ++done; }); }); }); });
        });
      });
    }
    all.await_all();
    CHECK(done == 4);
  });
}

TEST_CASE("a job's fiber that reads a file does not wait for jobs like it", "[offload][nested]") {
  const limited_to two(2);
  run([] {
    std::latch all_are_in(2);
    std::atomic<std::size_t> got{0};
    group all;
    for (int i = 0; i < 2; ++i) {
      all.spin([&] {
        offload([&] {
          all_are_in.arrive_and_wait();
          run([&] {
            const fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
            std::array<std::byte, 4> magic{};
            got += io::read(file.get(), magic);
          });
        });
      });
    }
    all.await_all();
    CHECK(got == 8);
  });
}

TEST_CASE("what a job waits for comes before what others do", "[offload][nested]") {
  const limited_to one(1);
  run([] {
    std::vector<std::string> order;
    std::atomic<bool> open{false};
    group all;
    all.spin([&] {
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
    all.spin([&] { offload([&] { order.emplace_back("another"); }); });
    snooze();
    open = true;
    open.notify_all();
    all.await_all();
    CHECK(order == std::vector<std::string>{"nested", "another"});
  });
}

TEST_CASE("jobs that were left do not take threads from others", "[offload]") {
  const limited_to two(2);
  run([] {
    std::atomic<bool> open{false};
    std::atomic<int> at_work{0};
    std::atomic<int> over{0};
    {
      group leaving;
      for (int i = 0; i < 2; ++i) {
        leaving.spin([&] {
          offload_owned([&] {
            ++at_work;
            open.wait(false);
            ++over;
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
    eventually([&] { return over == 2; });
  });
  until_no_worker_is_left();
}

TEST_CASE("a job that goes on alone has its thread counted until it ends", "[offload]") {
  const limited_to one(1);
  run([] {
    std::atomic<bool> open{false};
    std::atomic<int> at_work{0};
    std::atomic<int> over{0};
    // Four are all there may be, whoever was left.
    for (int i = 0; i < 4; ++i) {
      auto caller = spin([&] {
        offload_owned([&] {
          ++at_work;
          open.wait(false);
          ++over;
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
    eventually([&] { return over == 4; });
  });
  until_no_worker_is_left();
}

TEST_CASE("names are resolved while jobs have all threads", "[offload][dns]") {
  const limited_to two(2);
  run([] {
    std::atomic<bool> open{false};
    group all;
    for (int i = 0; i < 4; ++i) all.spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    CHECK_FALSE(dns::resolve("localhost", 80).empty());
    open = true;
    open.notify_all();
    all.await_all();
  });
}

TEST_CASE("a call that would wait for all others to end says so", "[offload][nested][deadlock]") {
  const limited_to one(1);
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

TEST_CASE("nested jobs of any number and depth end, or are told", "[offload][nested][deadlock]") {
  const limited_to two(2);
  run([] {
    std::atomic<int> ended{0};
    std::atomic<int> refused{0};
    group all;
    for (int i = 0; i < 24; ++i) {
      all.spin([&, i] {
        try {
          nest(1 + i % 6);
          ++ended;
        } catch (const deadlock&) {
          ++refused;
        }
      });
    }
    all.await_all();
    CHECK(ended + refused == 24);
    CHECK(ended > 0);
  });
}

TEST_CASE("a nested job in line can be taken back", "[offload][nested]") {
  const limited_to one(1);
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

TEST_CASE("programs that a job starts have the signals as the program has them", "[offload]") {
  run([] {
    const int status = offload([] { return std::system("kill -TERM $$; exit 3"); });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGTERM);
    CHECK(offload([] { return count_workers(); }) >= 1);
  });
}

TEST_CASE("a thread without a job takes no signal, and a job has the mask of its caller",
          "[offload]") {
  run([] {
    offload([] {});  // from here on there is a thread that waits for a job
    sigset_t usr1;
    ::sigemptyset(&usr1);
    ::sigaddset(&usr1, SIGUSR1);
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
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
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    CHECK(offload(blocked) == std::array{0, 0});
  });
}

#if defined(MOTET_FAULTS)
namespace {

int no_more_threads(const char* call) noexcept {
  return std::string_view(call) == "pthread_create" ? EAGAIN : 0;
}

}  // namespace

TEST_CASE("without any thread a job is refused, with one it waits for that", "[offload]") {
  until_no_worker_is_left();
  run([] {
    bool begun = false;
    detail::faults::choose = no_more_threads;
    CHECK_THROWS_AS(offload([&] { begun = true; }), std::system_error);
    CHECK_THROWS_AS(offload_owned([&] { begun = true; }), std::system_error);
    detail::faults::choose = nullptr;
    CHECK_FALSE(begun);

    std::atomic<bool> open{false};
    group all;
    all.spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    detail::faults::choose = no_more_threads;
    all.spin([&] { offload([&] { begun = true; }); });
    snooze();
    CHECK_FALSE(begun);
    open = true;
    open.notify_all();
    all.await_all();
    detail::faults::choose = nullptr;
    CHECK(begun);
  });
}

TEST_CASE("without any thread motet's own calls block the caller's", "[offload]") {
  until_no_worker_is_left();
  run([] {
    detail::faults::choose = no_more_threads;
    std::size_t names = 0;
    for ([[maybe_unused]] const walk_entry& each : directory_walk("/proc/self/fd")) ++names;
    detail::faults::choose = nullptr;
    CHECK(names >= 3);
  });
}
#endif
