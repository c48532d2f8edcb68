// SPDX-License-Identifier: MIT
// Threads with fibers of their own: what begins, waits, fails and ends there, and who is told.
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "support.hpp"
#include "threads/idle_thread.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::first_error;
using testing::quiet;
using testing::run_here;
using testing::words;
using testing::on_threads::idle_thread;
using testing::on_threads::witness;

namespace {

std::atomic<bool> thread_local_lived{false};
struct long_lived {
  bool alive = true;
  ~long_lived() { alive = false; }
};

thread_local long_lived of_thread;

/// Spins a child that lasts when it is destroyed.
struct late_spinner {
  explicit late_spinner(event& until) : lasts_until(&until) {}
  late_spinner(late_spinner&& from) noexcept
      : lasts_until(std::exchange(from.lasts_until, nullptr)) {}
  ~late_spinner() {
    if (lasts_until == nullptr) return;
    spin([until = lasts_until] { shield([&] { until->wait(); }); });
    snooze();
  }
  event* lasts_until;
};

}  // namespace

TEST_CASE("the function of a thread is a main fiber there", "[thread]") {
  std::thread::id there;
  bool orphan = false;
  bool can_spin = false;
  motet::thread one(quiet(), [&] {
    there = std::this_thread::get_id();
    orphan = !current().parent();
    can_spin = spin([] { return true; }).await();
  });
  one.await();
  CHECK(there != std::this_thread::get_id());
  CHECK(orphan);
  CHECK(can_spin);
}

TEST_CASE("awaiting a thread blocks only the fiber that does", "[thread]") {
  run_here([] {
    std::atomic<bool> go{false};
    motet::thread one(quiet(), [&] {
      while (!go) std::this_thread::sleep_for(100us);
    });
    bool over = false;
    auto waiting = spin([&] {
      one.await();
      over = true;
    });
    for (int i = 0; i < 100; ++i) snooze();
    CHECK_FALSE(over);
    go = true;
    waiting.await();
    CHECK(over);
  });
}

TEST_CASE("awaiting a thread rethrows what its function threw, as often as one likes", "[thread]") {
  motet::thread one(quiet(), [] { throw first_error(); });
  CHECK_THROWS_AS(one.await(), first_error);
  run_here([&] { CHECK_THROWS_AS(one.await(), first_error); });
}

TEST_CASE("a failure there that nobody was told of is the thread's", "[thread]") {
  motet::thread one(quiet(), [] {
    spin([] { throw first_error(); });
    shield([] { snooze(); });
  });
  CHECK_THROWS_AS(one.await(), first_error);
}

TEST_CASE("a failure that nobody awaits is told when the thread object goes", "[thread]") {
  std::vector<std::string> told;
  options how = quiet();
  how.on_unhandled = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      told.emplace_back(e.what());
    }
  };
  {
    motet::thread one(how, [] { throw first_error(); });
  }
  CHECK(told == words{"first"});
  {
    motet::thread one(how, [] { throw first_error(); });
    CHECK_THROWS_AS(one.await(), first_error);
  }
  CHECK(told == words{"first"});
}

TEST_CASE("a thread's end ends its fibers before its thread-locals die", "[thread]") {
  thread_local_lived = false;
  std::atomic<bool> cleaned{false};
  motet::thread one(quiet(), [&] {
    of_thread.alive = true;
    spin([&] {
      try {
        sleep();
      } catch (...) {
        snooze();
        thread_local_lived = of_thread.alive;
        cleaned = true;
        throw;
      }
    });
    snooze();
  });
  one.await();
  CHECK(cleaned);
  CHECK(thread_local_lived);
}

TEST_CASE("destroying a thread object cancels its function and waits for the end", "[thread]") {
  std::atomic<bool> cleaned{false};
  const auto clean_up_slowly = [&] {
    try {
      sleep();
    } catch (const cancelled&) {
      sleep_for(2ms);
      cleaned = true;
      throw;
    }
  };
  {
    motet::thread one(quiet(), clean_up_slowly);
    one.call([] {});  // it is in its sleep
  }
  CHECK(cleaned);
  cleaned = false;
  run_here([&] {
    bool others_ran = false;
    spin([&] { others_ran = true; });
    {
      motet::thread one(quiet(), clean_up_slowly);
      one.call([] {});
    }
    CHECK(others_ran);
  });
  CHECK(cleaned);
}

TEST_CASE("a cancelled thread's awaiters learn why", "[thread]") {
  motet::thread one = idle_thread();
  CHECK(one.cancel("enough") == cancel_result::accepted);
  try {
    one.await();
    FAIL("it was cancelled");
  } catch (const fiber_cancelled& how) {
    CHECK(how.reason() == std::string("enough"));
  }
}

TEST_CASE("a thread that cannot begin says why", "[thread]") {
  options wrong;
  wrong.backend = "no such";
  CHECK_THROWS_AS(motet::thread(wrong, [] {}), std::invalid_argument);
  options impossible;
  impossible.switches_between_polls = 0;
  run_here([&] { CHECK_THROWS_AS(motet::thread(impossible, [] {}), std::invalid_argument); });
}

TEST_CASE("a thread object can be moved, and is then another's", "[thread]") {
  motet::thread one = idle_thread();
  motet::thread other = std::move(one);
  CHECK_THROWS_AS(one.await(), std::logic_error);
  CHECK_THROWS_AS(one.post([] {}), std::logic_error);
  CHECK(other.call([] { return 3; }) == 3);
  other = idle_thread();
  CHECK(other.call([] { return 4; }) == 4);
}

TEST_CASE("a thread object that goes on its own thread lets it go on alone", "[thread]") {
  std::atomic<bool> over{false};
  auto one = std::make_shared<std::optional<motet::thread>>();
  one->emplace(quiet(), [&] {
    try {
      sleep();
    } catch (const cancelled&) {
    }
  });
  (*one)->post([one, &over]() mutable {
    const auto main = current().parent();
    one->reset();
    over = true;
    main.cancel();
  });
  one.reset();
  while (!over) std::this_thread::sleep_for(100us);
}

// post()

TEST_CASE("what is posted runs in order, each on a fiber of its own", "[thread][post]") {
  motet::thread one = idle_thread();
  std::vector<int> order;
  std::vector<std::uint64_t> fibers;
  std::thread::id where;
  for (int i = 0; i < 100; ++i) {
    one.post([&, i] {
      order.push_back(i);
      fibers.push_back(current().id());
      where = std::this_thread::get_id();
    });
  }
  one.call([&] { CHECK(where == std::this_thread::get_id()); });
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  std::sort(fibers.begin(), fibers.end());
  CHECK(std::adjacent_find(fibers.begin(), fibers.end()) == fibers.end());
}

TEST_CASE("a posted function is a child of the main fiber, which hears of its failure",
          "[thread][post]") {
  std::string told;
  std::atomic<bool> is_child{false};
  motet::thread one(quiet(), [&] {
    try {
      sleep();
    } catch (const first_error& error) {
      told = error.what();
    }
  });
  one.post([&] {
    is_child = !current().parent().parent();
    throw first_error();
  });
  one.await();
  CHECK(is_child);
  CHECK(told == "first");
}

TEST_CASE("a thread that has ended takes no more work, and says so", "[thread][post]") {
  motet::thread one(quiet(), [] {});
  one.await();
  std::atomic<int> destroyed{0};
  bool ran = false;
  CHECK_THROWS_AS(one.post([&ran, kept = witness(destroyed)] { ran = true; }), executor_stopped);
  CHECK(destroyed == 1);
  CHECK_THROWS_AS(one.call([&] { ran = true; }), executor_stopped);
  CHECK_THROWS_AS(one.spin([&ran, kept = witness(destroyed)] { ran = true; }), executor_stopped);
  CHECK(destroyed == 2);
  run_here([&] {
    CHECK_THROWS_AS(one.call([&] { ran = true; }), executor_stopped);
    CHECK_THROWS_AS(one.spin([&ran, kept = witness(destroyed)] { ran = true; }), executor_stopped);
    CHECK(current().children().empty());
  });
  CHECK(destroyed == 3);
  CHECK_FALSE(ran);
}

TEST_CASE("what has not begun when a thread ends is destroyed", "[thread][post]") {
  std::atomic<bool> go{false};
  std::atomic<int> destroyed{0};
  std::atomic<int> ran{0};
  motet::thread one(quiet(), [&] {
    while (!go) std::this_thread::sleep_for(100us);
  });
  for (int i = 0; i < 10; ++i) one.post([&ran, kept = witness(destroyed)] { ++ran; });
  go = true;
  one.await();
  CHECK(ran == 0);
  CHECK(destroyed == 10);
}

TEST_CASE("a great many small jobs take few stacks", "[thread][post]") {
  const auto count =
      static_cast<int>(testing::scaled(testing::under_tsan ? 100'000 : 1'000'000, 20'000));
  motet::thread one = idle_thread();
  std::atomic<bool> go{false};
  one.post([&] {
    while (!go) std::this_thread::sleep_for(100us);
  });
  int ran = 0;
  std::size_t most = 0;
  for (int i = 0; i < count; ++i) {
    one.post([&] {
      ++ran;
      if (ran % 64 == 0) most = std::max(most, current().parent().children().size());
    });
  }
  go = true;
  one.call([] {});
  CHECK(ran == count);
  CHECK(most <= 100);
}

TEST_CASE("what a capture spins when it is destroyed keeps no other function waiting",
          "[thread][post]") {
  motet::thread one = idle_thread();
  event over;
  one.post([kept = late_spinner(over)] {});
  one.post([&] { over.set(); });
  over.wait();
}

TEST_CASE("a thread that has gone on alone still tells how it failed", "[thread]") {
  std::atomic<bool> told{false};
  options how = quiet();
  how.on_unhandled = [&](const std::exception_ptr&) { told = true; };
  auto one = std::make_shared<std::optional<motet::thread>>();
  one->emplace(how, [] {
    suspend<bool>();
    throw first_error();
  });
  (*one)->post([kept = one]() mutable {
    const auto main = current().parent();
    kept->reset();
    main.schedule(true);
  });
  while (!told) std::this_thread::sleep_for(100us);
}

// Wakes

TEST_CASE("no wake is lost between a thread that goes to sleep and those that wake it",
          "[thread][stress]") {
  const auto wakes = static_cast<int>(testing::under_tsan ? testing::scaled(200'000, 10'000)
                                      : testing::on_sim() ? testing::scaled(1'000'000, 100'000)
                                                          : testing::scaled(10'000'000, 100'000));
  for (const auto busy : {0us, 100us}) {
    options how = quiet();
    how.busy_wait = busy;
    motet::thread one(how, [] { sleep(); });
    std::atomic<int> heard{0};
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 1; i <= wakes / 2; ++i) {
      one.post([&] { heard.fetch_add(1, std::memory_order_relaxed); });
      for (auto since = std::chrono::steady_clock::now(); heard < i;) {
        // Each is waited for, so that the next one finds a thread that is just going to sleep.
        if (std::chrono::steady_clock::now() - since > 5s) {
          FAIL("wake " << i << " of " << wakes << " was lost");
        }
        if (i % 64 == 0) std::this_thread::yield();
      }
    }
    INFO("per wake: " << (std::chrono::steady_clock::now() - begin) / (wakes / 2));
    CHECK(heard == wakes / 2);
  }
}

TEST_CASE("threads begin and end while others give them work", "[thread][stress]") {
  const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(1'000, 40)
                                                           : testing::scaled(10'000, 300));
  std::atomic<int> begun{0};
  std::atomic<int> destroyed{0};
  int taken = 0;
  for (int i = 0; i < rounds; ++i) {
    motet::thread one(quiet(), [i] {
      if (i % 3 == 0) sleep_for(50us);
    });
    std::atomic<bool> stop{false};
    std::atomic<int> left{0};
    std::thread poster([&] {
      while (!stop) {
        try {
          one.post([&begun, kept = witness(destroyed)] { ++begun; });
          ++left;
        } catch (const executor_stopped&) {
          --destroyed;  // the one that was refused
          return;
        }
      }
    });
    if (i % 2 == 0) one.await();
    stop = i % 2 != 0;
    poster.join();
    one.await();
    taken += left;
  }
  CHECK(destroyed == taken);
  CHECK(begun <= taken);
}

TEST_CASE("a thread without work sleeps", "[thread]") {
  if (testing::on_sim()) return;
  motet::thread one = idle_thread();
  const auto used = [&] {
    return one.call([] {
      timespec spent{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
      return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
    });
  };
  const auto before = used();
  const auto length = testing::scaled(10'000, 500);
  std::this_thread::sleep_for(std::chrono::milliseconds(length));
  CHECK(used() - before < 5ms);
}

TEST_CASE("a thread that is cancelled by pthread_cancel ends when its runtime has", "[thread]") {
  struct told {
    std::atomic<bool> waits{false};
    bool returned = false;
  } seen;
  const auto body = [](void* argument) -> void* {
    told& to = *static_cast<told*>(argument);
    testing::run_here([&] {
      auto ends = testing::make_socket_pair();
      to.waits = true;
      std::array<std::byte, 1> byte{};
      move_on_after(50ms, [&] { io::read(ends.first(), byte); });
      sleep_for(1ms);
    });
    to.returned = true;
    for (;;) ::pause();
  };
  pthread_t number{};
  REQUIRE(::pthread_create(&number, nullptr, body, &seen) == 0);
  while (!seen.waits) std::this_thread::sleep_for(1ms);
  REQUIRE(::pthread_cancel(number) == 0);
  void* result = nullptr;
  ::pthread_join(number, &result);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(seen.returned);
}
