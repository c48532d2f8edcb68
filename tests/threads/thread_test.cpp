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
  explicit late_spinner(event& gate) : lasts_until(&gate) {}
  late_spinner(late_spinner&& source) noexcept
      : lasts_until(std::exchange(source.lasts_until, nullptr)) {}
  ~late_spinner() {
    if (lasts_until == nullptr) return;
    spin([gate = lasts_until] { shield([&] { gate->wait(); }); });
    snooze();
  }
  event* lasts_until;
};

}  // namespace

TEST_CASE("thread: its function is the main fiber of a new runtime", "[thread]") {
  std::thread::id thread_id;
  bool orphan = false;
  bool can_spin = false;
  motet::thread worker(quiet(), [&] {
    thread_id = std::this_thread::get_id();
    orphan = !current().parent();
    can_spin = spin([] { return true; }).await();
  });
  worker.await();
  CHECK(thread_id != std::this_thread::get_id());
  CHECK(orphan);
  CHECK(can_spin);
}

TEST_CASE("thread::await() blocks only the calling fiber", "[thread]") {
  run_here([] {
    std::atomic<bool> go{false};
    motet::thread worker(quiet(), [&] {
      while (!go) std::this_thread::sleep_for(100us);
    });
    bool finished = false;
    auto waiter = spin([&] {
      worker.await();
      finished = true;
    });
    for (int i = 0; i < 100; ++i) snooze();
    CHECK_FALSE(finished);
    go = true;
    waiter.await();
    CHECK(finished);
  });
}

TEST_CASE("thread::await() rethrows what the function threw, each time", "[thread]") {
  motet::thread worker(quiet(), [] { throw first_error(); });
  CHECK_THROWS_AS(worker.await(), first_error);
  run_here([&] { CHECK_THROWS_AS(worker.await(), first_error); });
}

TEST_CASE("thread: a fiber's failure that nobody claims is the thread's failure", "[thread]") {
  motet::thread worker(quiet(), [] {
    spin([] { throw first_error(); });
    shield([] { snooze(); });
  });
  CHECK_THROWS_AS(worker.await(), first_error);
}

TEST_CASE("thread: the destructor reports a failure that nobody awaits", "[thread]") {
  std::vector<std::string> messages;
  options config = quiet();
  config.on_unhandled = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      messages.emplace_back(e.what());
    }
  };
  {
    motet::thread worker(config, [] { throw first_error(); });
  }
  CHECK(messages == words{"first"});
  {
    motet::thread worker(config, [] { throw first_error(); });
    CHECK_THROWS_AS(worker.await(), first_error);
  }
  CHECK(messages == words{"first"});
}

TEST_CASE("thread: the end of a thread ends its fibers before its thread_locals die", "[thread]") {
  thread_local_lived = false;
  std::atomic<bool> cleaned{false};
  motet::thread worker(quiet(), [&] {
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
  worker.await();
  CHECK(cleaned);
  CHECK(thread_local_lived);
}

TEST_CASE("thread: the destructor cancels the function and waits for its end", "[thread]") {
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
    motet::thread worker(quiet(), clean_up_slowly);
    worker.call([] {});  // it is in its sleep
  }
  CHECK(cleaned);
  cleaned = false;
  run_here([&] {
    bool others_ran = false;
    spin([&] { others_ran = true; });
    {
      motet::thread worker(quiet(), clean_up_slowly);
      worker.call([] {});
    }
    CHECK(others_ran);
  });
  CHECK(cleaned);
}

TEST_CASE("thread::await() tells why the thread was cancelled", "[thread]") {
  motet::thread worker = idle_thread();
  CHECK(worker.cancel("enough") == cancel_result::accepted);
  try {
    worker.await();
    FAIL("it was cancelled");
  } catch (const fiber_cancelled& error) {
    CHECK(error.reason() == std::string("enough"));
  }
}

TEST_CASE("thread: the constructor tells why the thread cannot start", "[thread]") {
  options wrong;
  wrong.backend = "no such";
  CHECK_THROWS_AS(motet::thread(wrong, [] {}), std::invalid_argument);
  options impossible;
  impossible.switches_between_polls = 0;
  run_here([&] { CHECK_THROWS_AS(motet::thread(impossible, [] {}), std::invalid_argument); });
}

TEST_CASE("thread can be moved", "[thread]") {
  motet::thread worker = idle_thread();
  motet::thread target = std::move(worker);
  CHECK_THROWS_AS(worker.await(), std::logic_error);
  CHECK_THROWS_AS(worker.post([] {}), std::logic_error);
  CHECK(target.call([] { return 3; }) == 3);
  target = idle_thread();
  CHECK(target.call([] { return 4; }) == 4);
}

TEST_CASE("thread: one that is destroyed on its own thread is detached", "[thread]") {
  std::atomic<bool> finished{false};
  auto holder = std::make_shared<std::optional<motet::thread>>();
  holder->emplace(quiet(), [&] {
    try {
      sleep();
    } catch (const cancelled&) {
    }
  });
  (*holder)->post([holder, &finished]() mutable {
    const auto main = current().parent();
    holder->reset();
    finished = true;
    main.cancel();
  });
  holder.reset();
  while (!finished) std::this_thread::sleep_for(100us);
}

// post()

TEST_CASE("thread::post() runs functions in order, each on a fiber of its own", "[thread][post]") {
  motet::thread worker = idle_thread();
  std::vector<int> order;
  std::vector<std::uint64_t> fibers;
  std::thread::id thread_id;
  for (int i = 0; i < 100; ++i) {
    worker.post([&, i] {
      order.push_back(i);
      fibers.push_back(current().id());
      thread_id = std::this_thread::get_id();
    });
  }
  worker.call([&] { CHECK(thread_id == std::this_thread::get_id()); });
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  std::sort(fibers.begin(), fibers.end());
  CHECK(std::adjacent_find(fibers.begin(), fibers.end()) == fibers.end());
}

TEST_CASE("thread::post(): the function is a child of the main fiber, which gets its failure",
          "[thread][post]") {
  std::string message;
  std::atomic<bool> is_child{false};
  motet::thread worker(quiet(), [&] {
    try {
      sleep();
    } catch (const first_error& error) {
      message = error.what();
    }
  });
  worker.post([&] {
    is_child = !current().parent().parent();
    throw first_error();
  });
  worker.await();
  CHECK(is_child);
  CHECK(message == "first");
}

TEST_CASE("thread::post() is refused after the thread has ended", "[thread][post]") {
  motet::thread worker(quiet(), [] {});
  worker.await();
  std::atomic<int> destroyed{0};
  bool ran = false;
  CHECK_THROWS_AS(worker.post([&ran, payload = witness(destroyed)] { ran = true; }),
                  executor_stopped);
  CHECK(destroyed == 1);
  CHECK_THROWS_AS(worker.call([&] { ran = true; }), executor_stopped);
  CHECK_THROWS_AS(worker.spin([&ran, payload = witness(destroyed)] { ran = true; }),
                  executor_stopped);
  CHECK(destroyed == 2);
  run_here([&] {
    CHECK_THROWS_AS(worker.call([&] { ran = true; }), executor_stopped);
    CHECK_THROWS_AS(worker.spin([&ran, payload = witness(destroyed)] { ran = true; }),
                    executor_stopped);
    CHECK(current().children().empty());
  });
  CHECK(destroyed == 3);
  CHECK_FALSE(ran);
}

TEST_CASE("thread::post(): functions that have not started when the thread ends are destroyed",
          "[thread][post]") {
  std::atomic<bool> go{false};
  std::atomic<int> destroyed{0};
  std::atomic<int> ran{0};
  motet::thread worker(quiet(), [&] {
    while (!go) std::this_thread::sleep_for(100us);
  });
  for (int i = 0; i < 10; ++i) worker.post([&ran, payload = witness(destroyed)] { ++ran; });
  go = true;
  worker.await();
  CHECK(ran == 0);
  CHECK(destroyed == 10);
}

TEST_CASE("thread::post(): a great many small functions need few stacks", "[thread][post]") {
  const auto count =
      static_cast<int>(testing::scaled(testing::under_tsan ? 100'000 : 1'000'000, 20'000));
  motet::thread worker = idle_thread();
  std::atomic<bool> go{false};
  worker.post([&] {
    while (!go) std::this_thread::sleep_for(100us);
  });
  int ran = 0;
  std::size_t peak = 0;
  for (int i = 0; i < count; ++i) {
    worker.post([&] {
      ++ran;
      if (ran % 64 == 0) peak = std::max(peak, current().parent().children().size());
    });
  }
  go = true;
  worker.call([] {});
  CHECK(ran == count);
  CHECK(peak <= 100);
}

TEST_CASE("thread::post(): a fiber spun by a capture's destructor delays no other function",
          "[thread][post]") {
  motet::thread worker = idle_thread();
  event finished;
  worker.post([payload = late_spinner(finished)] {});
  worker.post([&] { finished.set(); });
  finished.wait();
}

TEST_CASE("thread: a detached thread still reports its failure", "[thread]") {
  std::atomic<bool> notified{false};
  options config = quiet();
  config.on_unhandled = [&](const std::exception_ptr&) { notified = true; };
  auto holder = std::make_shared<std::optional<motet::thread>>();
  holder->emplace(config, [] {
    suspend<bool>();
    throw first_error();
  });
  (*holder)->post([payload = holder]() mutable {
    const auto main = current().parent();
    payload->reset();
    main.schedule(true);
  });
  while (!notified) std::this_thread::sleep_for(100us);
}

// Wakes

TEST_CASE("thread::post() loses no wake-up of a thread that goes to sleep", "[thread][stress]") {
  const auto wakes = static_cast<int>(testing::under_tsan ? testing::scaled(200'000, 10'000)
                                      : testing::on_sim() ? testing::scaled(1'000'000, 100'000)
                                                          : testing::scaled(10'000'000, 100'000));
  for (const auto busy : {0us, 100us}) {
    options config = quiet();
    config.busy_wait = busy;
    motet::thread worker(config, [] { sleep(); });
    std::atomic<int> heard{0};
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 1; i <= wakes / 2; ++i) {
      worker.post([&] { heard.fetch_add(1, std::memory_order_relaxed); });
      for (auto start = std::chrono::steady_clock::now(); heard < i;) {
        // Each is waited for, so that the next one finds a thread that is just going to sleep.
        if (std::chrono::steady_clock::now() - start > 5s) {
          FAIL("wake " << i << " of " << wakes << " was lost");
        }
        if (i % 64 == 0) std::this_thread::yield();
      }
    }
    INFO("per wake: " << (std::chrono::steady_clock::now() - begin) / (wakes / 2));
    CHECK(heard == wakes / 2);
  }
}

TEST_CASE("thread: threads start and end while others post to them", "[thread][stress]") {
  const auto rounds = static_cast<int>(testing::under_tsan ? testing::scaled(1'000, 40)
                                                           : testing::scaled(10'000, 300));
  std::atomic<int> starts{0};
  std::atomic<int> destroyed{0};
  int accepted = 0;
  for (int i = 0; i < rounds; ++i) {
    motet::thread worker(quiet(), [i] {
      if (i % 3 == 0) sleep_for(50us);
    });
    std::atomic<bool> stop{false};
    std::atomic<int> remaining{0};
    std::thread poster([&] {
      while (!stop) {
        try {
          worker.post([&starts, payload = witness(destroyed)] { ++starts; });
          ++remaining;
        } catch (const executor_stopped&) {
          --destroyed;  // the one that was refused
          return;
        }
      }
    });
    if (i % 2 == 0) worker.await();
    stop = i % 2 != 0;
    poster.join();
    worker.await();
    accepted += remaining;
  }
  CHECK(destroyed == accepted);
  CHECK(starts <= accepted);
}

TEST_CASE("thread without work uses no CPU time", "[thread]") {
  if (testing::on_sim()) return;
  motet::thread worker = idle_thread();
  const auto cpu_time = [&] {
    return worker.call([] {
      timespec spent{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
      return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
    });
  };
  const auto start = cpu_time();
  const auto length = testing::scaled(10'000, 500);
  std::this_thread::sleep_for(std::chrono::milliseconds(length));
  CHECK(cpu_time() - start < 5ms);
}

TEST_CASE("thread: after pthread_cancel() it ends when its runtime has", "[thread]") {
  struct told {
    std::atomic<bool> waits{false};
    bool returned = false;
  } events;
  const auto body = [](void* argument) -> void* {
    told& target = *static_cast<told*>(argument);
    testing::run_here([&] {
      auto ends = testing::make_socket_pair();
      target.waits = true;
      std::array<std::byte, 1> byte{};
      move_on_after(50ms, [&] { io::read(ends.first(), byte); });
      sleep_for(1ms);
    });
    target.returned = true;
    for (;;) ::pause();
  };
  pthread_t number{};
  REQUIRE(::pthread_create(&number, nullptr, body, &events) == 0);
  while (!events.waits) std::this_thread::sleep_for(1ms);
  REQUIRE(::pthread_cancel(number) == 0);
  void* result = nullptr;
  ::pthread_join(number, &result);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(events.returned);
}
