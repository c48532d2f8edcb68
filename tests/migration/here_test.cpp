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

TEST_CASE("here(): plain threads post functions that run in order, each on a fiber", "[executor]") {
  run([] {
    const int home = this_thread();
    const fiber_ref main = current();
    constexpr int many = 200;
    std::vector<int> numbers;
    bool right = true;
    event finish;
    std::thread plain([&, target = here()] {
      for (int i = 0; i < many; ++i) {
        target.post([&, i] {
          right = right && this_thread() == home && current().parent() == main;
          numbers.push_back(i);
          if (i % 3 == 0) snooze();
          if (i == many - 1) finish.set();
        });
      }
    });
    finish.wait();
    plain.join();
    CHECK(right);
    REQUIRE(numbers.size() == many);
    for (int i = 0; i < many; ++i) CHECK(numbers[static_cast<std::size_t>(i)] == i);
    CHECK_THROWS_AS(
        [&] {
          here().post([] { throw oops(); });
          sleep();
        }(),
        oops);
  });
}

TEST_CASE("here(): an executor of an ended runtime accepts nothing", "[executor]") {
  std::optional<executor> of_run;
  std::optional<executor> of_thread;
  bool destroyed = false;
  struct witness {
    bool* destroyed;
    explicit witness(bool& place) : destroyed(&place) {}
    witness(witness&& source) noexcept : destroyed(std::exchange(source.destroyed, nullptr)) {}
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
    bool was_called = false;
    of_run->post([&] { was_called = true; });
    while (!was_called) snooze();
  });
}

TEST_CASE("here(): a fiber of another thread goes to the main runtime and back",
          "[executor][portal]") {
  run([] {
    const int home = this_thread();
    motet::thread worker(options{}, [] { sleep(); });
    worker.call([main = executor(here()), home] {
      const int away = this_thread();
      {
        const portal visit(main);
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
    motet::thread remote(options{}, [] { sleep(); });
    const auto place = remote.call([] { return this_thread(); });
    executor target = remote.call([] { return here(); });
    {
      const portal visit(target);
      CHECK(this_thread() == place);
    }
    thread_pool pool(2);
    const auto [worker, number] =
        pool.submit([] { return std::pair<executor, int>(here(), this_thread()); }).get();
    for (int i = 0; i < 4; ++i) {
      const portal visit(worker);
      CHECK(this_thread() == number);
    }
  });
}

TEST_CASE("here(): a runtime reports a deadlock when the last executor is gone",
          "[executor][deadlock]") {
  run([] {
    event never;
    std::optional<executor> target = here();
    auto drops = spin([&] {
      sleep_for(20ms);
      target.reset();
    });
    CHECK_THROWS_AS(never.wait(), deadlock);
    CHECK(drops.state() == fiber_state::dead);
  });
}

TEST_CASE("here(): a forked child cannot post to its parent's runtime", "[executor][fork]") {
  run([] {
    const executor target = here();
    bool was_called = false;
    target.post([&] { was_called = true; });
    const pid_t child = ::fork();
    if (child == 0) {
      bool refused = false;
      try {
        target.post([] {});
      } catch (const executor_stopped&) {
        refused = true;
      }
      bool ran_in_child = false;
      here().post([&] { ran_in_child = true; });
      for (int i = 0; i < 10; ++i) snooze();
      ::_exit(refused && ran_in_child && !was_called ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    while (!was_called) snooze();
  });
}
