// SPDX-License-Identifier: MIT
// here(): a way to the runtime of whatever thread.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::this_thread;

TEST_CASE("plain threads have a runtime call functions, in order, each on a fiber", "[executor]") {
  run([] {
    const int home = this_thread();
    const fiber_ref main = current();
    constexpr int many = 200;
    std::vector<int> seen;
    bool right = true;
    event over;
    std::thread plain([&, to = here()] {
      for (int i = 0; i < many; ++i) {
        to.post([&, i] {
          right = right && this_thread() == home && current().parent() == main;
          seen.push_back(i);
          if (i % 3 == 0) snooze();
          if (i == many - 1) over.set();
        });
      }
    });
    over.wait();
    plain.join();
    CHECK(right);
    REQUIRE(seen.size() == many);
    for (int i = 0; i < many; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
    CHECK_THROWS_AS(
        [&] {
          here().post([] { throw oops(); });
          sleep();
        }(),
        oops);
  });
}

TEST_CASE("an executor of a runtime that has ended takes nothing", "[executor]") {
  std::optional<executor> of_run;
  std::optional<executor> of_thread;
  bool destroyed = false;
  struct witness {
    bool* destroyed;
    explicit witness(bool& place) : destroyed(&place) {}
    witness(witness&& from) noexcept : destroyed(std::exchange(from.destroyed, nullptr)) {}
    witness(const witness&) = delete;
    ~witness() {
      if (destroyed != nullptr) *destroyed = true;
    }
    void operator()() const { FAIL("the runtime had ended"); }
  };
  run([&] {
    of_run = here();
    of_run->post(witness(destroyed));  // it has not begun when the main fiber returns
  });
  CHECK(destroyed);
  CHECK_THROWS_AS(of_run->post([] {}), executor_stopped);
  run([&] {
    CHECK_THROWS_AS(teleport(*of_run), executor_stopped);
    motet::thread(options{}, [&] { of_thread = here(); }).await();
    CHECK_THROWS_AS(of_thread->post([] {}), executor_stopped);
    of_run = here();  // another runtime on the same thread
    bool called = false;
    of_run->post([&] { called = true; });
    while (!called) snooze();
  });
}

TEST_CASE("a fiber of another thread goes to the main runtime and back", "[executor][portal]") {
  run([] {
    const int home = this_thread();
    motet::thread other(options{}, [] { sleep(); });
    other.call([main = executor(here()), home] {
      const int away = this_thread();
      {
        const portal there(main);
        CHECK(this_thread() == home);
        sleep_for(1ms);
        const portal nested(main);  // is here already
        CHECK(this_thread() == home);
      }
      CHECK(this_thread() == away);
    });
    teleport(here());
    CHECK(this_thread() == home);
  });
}

TEST_CASE("here() on a thread and on a worker is that thread", "[executor]") {
  run([] {
    motet::thread other(options{}, [] { sleep(); });
    const auto place = other.call([] { return this_thread(); });
    executor to = other.call([] { return here(); });
    {
      const portal there(to);
      CHECK(this_thread() == place);
    }
    thread_pool pool(2);
    const auto [worker, number] =
        pool.submit([] { return std::pair<executor, int>(here(), this_thread()); }).get();
    for (int i = 0; i < 4; ++i) {
      const portal there(worker);
      CHECK(this_thread() == number);
    }
  });
}

TEST_CASE("a runtime is stuck again when nobody has its executor", "[executor][deadlock]") {
  run([] {
    event never;
    std::optional<executor> to = here();
    auto drops = spin([&] {
      sleep_for(20ms);
      to.reset();
    });
    CHECK_THROWS_AS(never.wait(), deadlock);
    CHECK(drops.state() == fiber_state::dead);
  });
}

TEST_CASE("a forked child has no way into its parent's runtime", "[executor][fork]") {
  run([] {
    const executor to = here();
    bool called = false;
    to.post([&] { called = true; });
    const pid_t child = ::fork();
    if (child == 0) {
      bool refused = false;
      try {
        to.post([] {});
      } catch (const executor_stopped&) {
        refused = true;
      }
      bool mine = false;
      here().post([&] { mine = true; });
      for (int i = 0; i < 10; ++i) snooze();
      ::_exit(refused && mine && !called ? 0 : 1);
    }
    int how = 0;
    REQUIRE(::waitpid(child, &how, 0) == child);
    CHECK(how == 0);
    while (!called) snooze();
  });
}
