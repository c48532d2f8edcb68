// SPDX-License-Identifier: MIT
// Calls that block, made by plain threads while only one fiber waits.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <motet/debug.hpp>
#include <motet/motet.hpp>
#include <motet/offload.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "ground/offload_threads.hpp"
#include "support.hpp"
#include "words/faults.hpp"

using namespace motet;
using namespace std::chrono_literals;
namespace threads = motet::detail::offload_threads;

namespace {

/// Threads that are idle do not stay for long in these tests.
[[maybe_unused]] const bool impatient = [] {
  threads::idle_time = 100ms;
  return true;
}();

/// Returns: how many threads of this process have that name.
int count_threads(std::string_view wanted) {
  int count = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc/self/task"), &::closedir);
  while (const dirent* entry = ::readdir(all.get())) {
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string name;
    std::getline(file, name);
    if (name == wanted) ++count;
  }
  return count;
}

int count_workers() {
  return count_threads("motet offload");
}

void until_no_worker_is_left() {
  while (count_workers() > 0) std::this_thread::sleep_for(5ms);
}

/// At most so many, for as long as it lives; none at first.
class limited_to {
 public:
  explicit limited_to(std::size_t most) : before_(threads::most.exchange(most)) {
    until_no_worker_is_left();
  }
  limited_to(const limited_to&) = delete;
  limited_to& operator=(const limited_to&) = delete;
  ~limited_to() { threads::most = before_; }

 private:
  std::size_t before_;
};

/// Counts those that live, and how many were destroyed on the thread it was made for.
struct witness {
  explicit witness(std::atomic<int>& alive) : alive_(&alive) { ++*alive_; }
  witness(witness&& from) noexcept : alive_(from.alive_) { ++*alive_; }
  witness& operator=(witness&&) = delete;
  ~witness() { --*alive_; }

 private:
  std::atomic<int>* alive_;
};

template <typename F>
void eventually(F holds) {
  while (!holds()) std::this_thread::sleep_for(1ms);
}

/// So many jobs end only together, which takes as many threads.
void have_met(int count) {
  std::latch met(count);
  group all;
  for (int i = 0; i < count; ++i) all.spin([&] { offload([&] { met.arrive_and_wait(); }); });
  all.await_all();
}

/// Returns: what a cancelled fiber throws.
std::exception_ptr a_cancellation() {
  std::exception_ptr kept;
  auto fiber = spin([&] {
    try {
      sleep();
    } catch (const cancelled&) {
      kept = std::current_exception();
      throw;
    }
  });
  snooze();
  fiber.cancel("enough");
  CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
  return kept;
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

TEST_CASE("offload returns what was returned on another thread", "[offload]") {
  run([] {
    const auto here = std::this_thread::get_id();
    CHECK(offload([] { return std::this_thread::get_id(); }) != here);
    CHECK(offload([] { return 42; }) == 42);
    CHECK(*offload([] { return std::make_unique<int>(7); }) == 7);
    int local = 1;
    int& same = offload([&]() -> int& { return local; });
    CHECK(&same == &local);
    offload([&] { local = 2; });
    CHECK(local == 2);
    CHECK(offload([text = std::string("a callable that is moved")] { return text; }).size() == 24);
    CHECK(offload_owned([] { return 42; }) == 42);
    CHECK(*offload_owned([kept = std::make_unique<int>(8)]() mutable { return std::move(kept); }) ==
          8);
    offload_owned([] {});
  });
}

TEST_CASE("what a job throws is thrown to its caller", "[offload]") {
  run([] {
    const auto fail = [] { throw std::out_of_range("far"); };
    CHECK_THROWS_AS(offload(fail), std::out_of_range);
    CHECK_THROWS_AS(offload_owned(fail), std::out_of_range);
  });
}

TEST_CASE("a cancellation that a job throws is not the caller's", "[offload]") {
  run([] {
    const std::exception_ptr foreign = a_cancellation();
    const auto fail = [&] { std::rethrow_exception(foreign); };
    CHECK_THROWS_AS(offload(fail), fiber_cancelled);
    CHECK_THROWS_AS(offload_owned(fail), fiber_cancelled);
    checkpoint();
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

namespace {

/// Offloads within offloaded work, each time from a runtime of its own.
void nest(int depth) {
  if (depth > 0) offload([depth] { run([depth] { nest(depth - 1); }); });
}

}  // namespace

TEST_CASE("a call that would wait for all others to end says so", "[offload][nested][deadlock]") {
  const limited_to one(1);
  run([] {
    nest(4);
    try {
      nest(5);
      FAIL("nothing was thrown");
    } catch (const deadlock& e) {
      CHECK(std::string(e.what()).find("wait for work that is offloaded in turn") !=
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

TEST_CASE("while a job blocks its thread, others of the caller's run", "[offload]") {
  int best = 0;
  for (int attempt = 0; attempt < 10 && best < 18; ++attempt) {
    run([&] {
      int ticks = 0;
      const auto from = std::chrono::steady_clock::now();
      auto ticker = spin([&] { every(10ms, [&] { ++ticks; }); });
      offload([] { std::this_thread::sleep_for(200ms); });
      best = std::max(best, ticks);
      // Virtual time does not run ahead of what the job needs of the real one.
      CHECK(ticks * 10ms <= std::chrono::steady_clock::now() - from + 10ms);
      ticker.cancel();
    });
  }
  CHECK(best >= 18);
}

TEST_CASE("an interruption waits for the end of a job that borrows", "[offload]") {
  run([] {
    std::atomic<bool> over{false};
    bool over_when_unwound = false;
    int returned = 0;
    auto fiber = spin([&] {
      try {
        returned = offload([&] {
          std::this_thread::sleep_for(60ms);
          over = true;
          return 5;
        });
        snooze();
      } catch (const cancelled&) {
        over_when_unwound = over;
        throw;
      }
    });
    sleep_for(10ms);
    fiber.cancel();
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK(over_when_unwound);
    CHECK(returned == 5);
  });
}

TEST_CASE("an exception that is raised meanwhile is thrown after the result", "[offload]") {
  run([] {
    std::atomic<bool> go{false};
    std::string seen;
    auto fiber = spin([&] {
      offload([&] { go.wait(false); });
      seen = "returned";
      try {
        snooze();
      } catch (const std::runtime_error& e) {
        seen += e.what();
      }
    });
    snooze();
    CHECK(fiber.raise(std::runtime_error(", then raised")));
    snooze();
    CHECK(seen.empty());
    go = true;
    go.notify_all();
    fiber.await();
    CHECK(seen == "returned, then raised");
  });
}

TEST_CASE("a deadline is late by what is left of the job", "[offload]") {
  run([] {
    std::atomic<bool> over{false};
    CHECK_THROWS_AS(with_timeout(5ms,
                                 [&] {
                                   offload([&] {
                                     std::this_thread::sleep_for(30ms);
                                     over = true;
                                   });
                                   sleep();
                                 }),
                    timed_out);
    CHECK(over);
  });
}

TEST_CASE("a job that takes a stop_token is asked to stop when its caller is interrupted",
          "[offload]") {
  run([] {
    const auto patiently = [](std::stop_token token) {
      while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
      return 9;
    };
    int returned = 0;
    const bool in_time = move_on_after(10ms, [&] {
      returned = offload(patiently);
      snooze();
    });
    CHECK_FALSE(in_time);
    CHECK(returned == 9);
    CHECK(offload([](std::stop_token token) { return token.stop_possible(); }));

    std::atomic<bool> stopped{false};
    CHECK_FALSE(move_on_after(10ms, [&] {
      offload_owned([&](std::stop_token token) {
        while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
        stopped = true;
      });
    }));
    eventually([&] { return stopped.load(); });
  });
}

TEST_CASE("a job that nobody has begun is not begun when its caller is interrupted", "[offload]") {
  const limited_to one(1);
  run([] {
    std::atomic<bool> open{false};
    std::atomic<int> alive{0};
    std::atomic<bool> begun{false};
    group all;
    all.spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    CHECK_FALSE(move_on_after(1ms, [&] { offload([&] { begun = true; }); }));
    CHECK_FALSE(
        move_on_after(1ms, [&] { offload_owned([&, held = witness(alive)] { begun = true; }); }));
    CHECK(alive == 0);
    open = true;
    open.notify_all();
    all.await_all();
    offload([] {});
    CHECK_FALSE(begun);
  });
}

TEST_CASE("an interruption that is pending keeps a job from being begun", "[offload]") {
  run([] {
    bool begun = false;
    auto fiber = spin([&] {
      current().cancel();
      offload([&] { begun = true; });
    });
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    CHECK_FALSE(begun);
  });
}

TEST_CASE("a job that owns what it touches is left at once, and destroyed once on its thread",
          "[offload]") {
  run([] {
    std::atomic<int> alive{0};
    std::atomic<bool> open{false};
    std::atomic<bool> over{false};
    CHECK_THROWS_AS(with_timeout(5ms,
                                 [&] {
                                   offload_owned([&, held = witness(alive)] {
                                     open.wait(false);
                                     over = true;
                                     return witness(alive);
                                   });
                                 }),
                    timed_out);
    CHECK_FALSE(over);
    CHECK(alive == 1);
    open = true;
    open.notify_all();
    eventually([&] { return alive == 0; });
    CHECK(over);
  });
}

TEST_CASE("what a job throws after it was left is dropped", "[offload]") {
  options strict;
  std::atomic<int> unhandled{0};
  strict.on_unhandled = [&](std::exception_ptr) { ++unhandled; };
  run(strict, [] {
    std::atomic<int> alive{0};
    std::atomic<bool> open{false};
    CHECK_FALSE(move_on_after(5ms, [&] {
      offload_owned([&, held = witness(alive)] {
        open.wait(false);
        throw std::runtime_error("to nobody");
      });
    }));
    open = true;
    open.notify_all();
    eventually([&] { return alive == 0; });
  });
  CHECK(unhandled == 0);
}

TEST_CASE("whenever an interruption comes, a job is over or left exactly once", "[offload]") {
  run([] {
    std::atomic<int> alive{0};
    const std::size_t rounds = testing::scaled(20'000, 400);
    std::size_t returned = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      auto fiber = spin([&] {
        offload_owned([held = witness(alive)] {});
        ++returned;
      });
      auto lending = spin([&] {
        bool done = false;
        offload([&] { done = true; });
        if (!done) throw std::logic_error("it returned too early");
      });
      for (std::size_t turn = 0; turn < i % 7; ++turn) {
        snooze();
        if (i % 3 == 0) std::this_thread::yield();
      }
      if (i % 5 == 0) sleep_for(std::chrono::microseconds(i % 100));
      fiber.cancel();
      lending.cancel();
      for (auto* each : {&fiber, &lending}) {
        try {
          each->await();
        } catch (const fiber_cancelled&) {
        }
      }
    }
    eventually([&] { return alive == 0; });
    CHECK(returned > 0);
    CHECK(returned < rounds);
  });
}

TEST_CASE("a thread without a runtime makes the call itself", "[offload]") {
  bool here = false;
  bool owned_here = false;
  bool threw = false;
  std::thread plain([&] {
    const auto self = std::this_thread::get_id();
    here = offload([] { return std::this_thread::get_id(); }) == self;
    owned_here = offload_owned([] { return std::this_thread::get_id(); }) == self;
    try {
      offload([] { throw std::runtime_error("here"); });
    } catch (const std::runtime_error&) {
      threw = true;
    }
  });
  plain.join();
  CHECK(here);
  CHECK(owned_here);
  CHECK(threw);
}

TEST_CASE("a job may use what needs no runtime", "[offload]") {
  run([] {
    channel<int> numbers;
    group both;
    both.spin([&] {
      offload([&] {
        for (int i = 0; i < 10; ++i) numbers.push(i);
        numbers.close();
      });
    });
    int sum = 0;
    for (const int each : numbers) sum += each;
    both.await_all();
    CHECK(sum == 45);
  });
}

TEST_CASE("a runtime that a job starts ends with the job", "[offload]") {
  const limited_to one(1);
  run([] {
    for (int i = 0; i < 3; ++i) {
      std::atomic<bool> ended{false};
      offload([&] {
        auto forgotten = spin([&ended] {
          try {
            sleep();
          } catch (const cancelled&) {
            ended = true;
            throw;
          }
        });
        sleep_for(1ms);
      });
      CHECK(ended);
    }
    CHECK(offload([] { return run([] { return current().id() != 0; }); }));
  });
}

TEST_CASE("a thread for jobs gets no signals and says what it is", "[offload]") {
  run([] {
    const auto blocked = offload([] {
      sigset_t mask;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      return std::array{::sigismember(&mask, SIGTERM), ::sigismember(&mask, SIGCHLD),
                        ::sigismember(&mask, SIGSEGV)};
    });
    CHECK(blocked == std::array{1, 1, 0});
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    CHECK(::sigismember(&mask, SIGTERM) == 0);
    CHECK(offload([] { return count_workers(); }) >= 1);
  });
}

TEST_CASE("a dump says what waits for a job, and that it cannot be interrupted", "[offload]") {
  run([] {
    std::atomic<bool> open{false};
    auto fiber = spin({.name = "patient"}, [&] { offload([&] { open.wait(false); }); });
    snooze();
    std::ostringstream before;
    dump(before);
    CHECK(before.str().find("end of an offloaded job") != std::string::npos);
    fiber.cancel();
    snooze();
    std::ostringstream after;
    dump(after);
    CHECK(after.str().find("cancelling") != std::string::npos);
    open = true;
    open.notify_all();
    fiber.await();
  });
}

// ThreadSanitizer lets no forked child of several threads begin another, or end its last; and what
// only the stacks of other threads refer to is a leak in a child that ends, for LeakSanitizer.

TEST_CASE("a forked child has threads of its own", "[offload][fork]") {
  if (testing::under_tsan) return;
  run([] {
    offload([] {});
    std::atomic<bool> open{false};
    auto other = spin([&] { offload([&] { open.wait(false); }); });
    snooze();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const bool fine =
          offload([] { return count_workers(); }) == 1 && offload_owned([] { return 3; }) == 3;
      ::_exit(fine ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    open = true;
    open.notify_all();
    other.await();
  });
}

TEST_CASE("a child that a job forks ends with the job", "[offload][fork]") {
  if (testing::under_tsan || testing::under_asan) return;
  run([] {
    const int code = offload([] {
      const pid_t child = ::fork();
      if (child == 0) return 0;
      int status = -1;
      ::waitpid(child, &status, 0);
      return status;
    });
    CHECK(code == 0);
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
#endif

namespace {

/// A file without a name, of `size` bytes that tell where they are.
class temporary_file {
 public:
  explicit temporary_file(std::size_t size) : content_(size, '.') {
    std::string name = std::filesystem::temp_directory_path() / "motet-offload-XXXXXX";
    file_ = fd(::mkostemp(name.data(), O_CLOEXEC));
    REQUIRE(file_);
    ::unlink(name.c_str());
    for (std::size_t i = 0; i < size; ++i) content_[i] = static_cast<char>('a' + i % 23);
    REQUIRE(::write(get(), content_.data(), size) == static_cast<ssize_t>(size));
    rewind();
  }

  int get() const { return file_.get(); }
  const std::string& content() const { return content_; }
  off_t position() const { return ::lseek(get(), 0, SEEK_CUR); }
  void rewind() const { ::lseek(get(), 0, SEEK_SET); }
  /// From here on the disk must be asked, if the kernel can do that.
  void drop_from_memory() const {
    std::this_thread::sleep_for(2ms);
    ::fsync(get());
    ::posix_fadvise(get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  /// Returns: whether the disk must be asked now; which may have it asked.
  bool reads_block() const {
    char byte = 0;
    const iovec one{&byte, 1};
    return ::preadv2(get(), &one, 1, 0, RWF_NOWAIT) < 0 && errno == EAGAIN;
  }
  /// Returns: whether the kernel cannot tell if a write would block.
  bool writes_block() const {
    const iovec one{const_cast<char*>(content_.data()), 1};
    return ::pwritev2(get(), &one, 1, 0, RWF_NOWAIT) < 0 &&
           (errno == EOPNOTSUPP || errno == EAGAIN);
  }
  void close() { file_.close(); }

 private:
  std::string content_;
  fd file_;
};

/// The one thread there may be is in a job until this ends.
class busy_worker {
 public:
  busy_worker() {
    offloading_.spin([this] { offload([this] { open_.wait(false); }); });
    snooze();
  }
  busy_worker(const busy_worker&) = delete;
  busy_worker& operator=(const busy_worker&) = delete;
  ~busy_worker() { release(); }
  void release() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
  group offloading_;
};

constexpr std::size_t some = 64 << 10;

}  // namespace

TEST_CASE("what a file has at hand is read without another thread", "[offload][file]") {
  run([] {
    const temporary_file file(some);
    until_no_worker_is_left();
    std::vector<std::byte> buffer(some);
    CHECK(io::read(file.get(), buffer) == some);
    CHECK(testing::text_of(buffer) == file.content());
    CHECK(io::read(file.get(), buffer) == 0);
    CHECK(count_workers() == 0);
  });
}

/// Reads it in pieces of two buffers.
std::string read_all(int file) {
  std::string text;
  std::array<std::byte, 5'000> first{};
  std::array<std::byte, 3'000> second{};
  const std::array both{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
  while (const std::size_t size = io::readv(file, both)) {
    text += testing::text_of(std::span(first).first(std::min(size, first.size())));
    if (size > first.size()) text += testing::text_of(std::span(second).first(size - first.size()));
  }
  return text;
}

TEST_CASE("what a file must fetch from the disk is read by another thread", "[offload][file]") {
  run([] {
    // What was just written may be kept for some time yet.
    constexpr int attempts = 200;
    const temporary_file probe(some);
    bool can_be_dropped = false;
    for (int attempt = 0; attempt < attempts && !can_be_dropped; ++attempt) {
      probe.drop_from_memory();
      can_be_dropped = probe.reads_block();
    }
    const temporary_file file(some);
    until_no_worker_is_left();
    bool by_another = false;
    for (int attempt = 0; attempt < attempts && !by_another; ++attempt) {
      file.rewind();
      file.drop_from_memory();
      CHECK(read_all(file.get()) == file.content());
      by_another = count_workers() > 0;
    }
    if (can_be_dropped) CHECK(by_another);
  });
}

TEST_CASE("files are written at their position, in whichever thread", "[offload][file]") {
  run([] {
    const temporary_file file(0);
    const std::string text = "one two three";
    const std::span<const std::byte> bytes = testing::bytes_of(text);
    CHECK(io::write(file.get(), bytes.first(4)) == 4);
    const std::array rest{iovec{const_cast<char*>(text.data()) + 4, 4},
                          iovec{const_cast<char*>(text.data()) + 8, 5}};
    CHECK(io::writev(file.get(), rest) == 9);
    CHECK(file.position() == 13);
    file.rewind();
    std::vector<std::byte> back(64);
    CHECK(io::read(file.get(), back) == 13);
    CHECK(testing::text_of(std::span(back).first(13)) == text);
    CHECK_THROWS_AS(io::write(-1, bytes), std::system_error);
  });
}

TEST_CASE("a write that no thread has begun has not happened when it is cancelled",
          "[offload][file]") {
  const limited_to one(1);
  run([] {
    const temporary_file file(10);
    if (!file.writes_block()) return;
    busy_worker busy;
    CHECK_FALSE(move_on_after(5ms, [&] { io::write(file.get(), testing::bytes_of("never")); }));
    CHECK(file.position() == 0);
    std::error_code error;
    CHECK_FALSE(move_on_after(5ms, [&] {
      io::write(file.get(), testing::bytes_of("never"), error);
      snooze();
    }));
    CHECK(error == std::errc::operation_canceled);
    CHECK(file.position() == 0);
  });
}

TEST_CASE("closing a file ends what no thread has begun on it", "[offload][file]") {
  const limited_to one(1);
  run([] {
    temporary_file file(10);
    if (!file.writes_block()) return;
    busy_worker busy;
    std::error_code error;
    auto writer = spin([&] { io::write(file.get(), testing::bytes_of("never"), error); });
    snooze();
    CHECK(writer.state() == fiber_state::waiting);
    file.close();
    writer.await();
    CHECK(error == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a write that was begun is returned, whoever is impatient", "[offload][file]") {
  run([] {
    const temporary_file file(0);
    const std::vector<std::byte> much(testing::scaled(16 << 20, 1 << 20));
    std::size_t written = 0;
    for (int round = 0; round < 6; ++round) {
      std::size_t now = 0;
      std::error_code error;
      auto writer = spin([&] { now = io::write(file.get(), much, error); });
      for (int i = 0; i < round; ++i) snooze();
      writer.cancel();
      try {
        writer.await();
      } catch (const fiber_cancelled&) {
      }
      if (error) CHECK(error == std::errc::operation_canceled);
      written += now;
    }
    CHECK(file.position() == static_cast<off_t>(written));
  });
}

TEST_CASE("a close waits for what a thread does on the file", "[offload][file]") {
  run([] {
    const std::vector<std::byte> much(testing::scaled(16 << 20, 1 << 20));
    for (int round = 0; round < 6; ++round) {
      temporary_file file(0);
      std::size_t written = 0;
      std::error_code error;
      auto writer = spin([&] { written = io::write(file.get(), much, error); });
      for (int i = 0; i < round; ++i) snooze();
      file.close();
      writer.await();
      if (written == 0) CHECK(error == std::errc::bad_file_descriptor);
    }
  });
}
