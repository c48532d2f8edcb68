// SPDX-License-Identifier: MIT
// Awaiting a fiber of another thread: what it came to, told once, and an await that is left.
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"
#include "strangers.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::box;
using testing::distant;
using testing::first_error;
using testing::outcome_of;
using testing::strangers;
using testing::among_strangers::run_here;

TEST_CASE("fiber::await() in a plain thread gives a value, a failure or a cancellation",
          "[await]") {
  distant<int> value([] {
    return spin([] {
      sleep_for(1ms);
      return 42;
    });
  });
  distant<int> failure([] { return spin([]() -> int { throw first_error(); }); });
  distant<int> cancellation([] { return spin([]() -> int { sleep(); }); });
  CHECK(outcome_of([&] { return value.handle.await(); }) == "42");
  CHECK(outcome_of([&] { return failure.handle.await(); }) == "first");
  CHECK(cancellation.handle.cancel("from afar") == cancel_result::accepted);
  CHECK(outcome_of([&] { return cancellation.handle.await(); }) == "from afar");
  CHECK(value.handle.await() == 42);
}

TEST_CASE("fiber::await() on another thread's fiber gives a value, a failure or a cancellation",
          "[await]") {
  run_here([] {
    distant<int> value([] {
      return spin([] {
        sleep_for(1ms);
        return 42;
      });
    });
    distant<int> failure([] {
      return spin([]() -> int {
        (void)suspend<int>();
        throw first_error();
      });
    });
    distant<int> cancellation([] { return spin([]() -> int { sleep(); }); });
    CHECK(outcome_of([&] { return value.handle.await(); }) == "42");
    failure.handle.schedule(0);
    CHECK(outcome_of([&] { return failure.handle.await(); }) == "first");
    cancellation.handle.cancel("from afar");
    CHECK(outcome_of([&] { return cancellation.handle.await(); }) == "from afar");
    CHECK(value.handle.await() == 42);
  });
}

TEST_CASE("fiber::await() on an rvalue moves the result to another thread", "[await]") {
  distant<std::unique_ptr<int>> f([] {
    return spin([] {
      sleep_for(1ms);
      return std::make_unique<int>(9);
    });
  });
  CHECK(*std::move(f.handle).await() == 9);
  CHECK_THROWS_AS(f.handle.await(), std::logic_error);
}

TEST_CASE("fiber::await() on another thread lets other fibers run", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    int rounds = 0;
    auto scheduler = spin([&] {
      for (; rounds < 10; ++rounds) snooze();
      f.handle.schedule(3);
    });
    CHECK(f.handle.await() == 3);
    CHECK(rounds == 10);
    scheduler.await();
  });
}

TEST_CASE("fiber::await() by many threads gives all of them the value", "[await]") {
  constexpr int threads = 8;
  constexpr int fibers = 20;
  std::atomic<int> right{0};
  run_here([&] {
    auto f = spin([] { return suspend<int>(); });
    std::atomic<int> ready{0};
    strangers joiners;
    for (int i = 0; i < threads; ++i) {
      joiners.start([&] {
        ++ready;
        right += f.await();
      });
      joiners.start_runtime([&] {
        group voices;
        for (int k = 0; k < fibers; ++k) voices.spin([&] { right += f.await(); });
        ++ready;
        voices.await_all();
      });
    }
    while (ready < 2 * threads) snooze();
    f.schedule(1);
    CHECK(f.await() == 1);
    joiners.settle();
  });
  CHECK(right == threads * (fibers + 1));
}

TEST_CASE("fiber::await() on another thread claims a failure, which the parent does not receive",
          "[await]") {
  distant<int> f([] {
    return spin([]() -> int {
      (void)suspend<int>();
      throw first_error();
    });
  });
  std::atomic<bool> waiting{false};
  std::string message;
  std::thread awaiter([&] {
    waiting = true;
    message = outcome_of([&] { return f.handle.await(); });
  });
  while (!waiting) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);  // it has most likely gone to wait
  f.handle.schedule(1);
  awaiter.join();
  f.dismiss();
  CHECK(message == "first");
  CHECK(f.failures() <= 1);  // the parent, too, only if the awaiter came too late
}

TEST_CASE("fiber::await() on another thread can be interrupted, and the awaited fiber lives on",
          "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    auto awaiter = spin([&] {
      CHECK_THROWS_AS(f.handle.await(), first_error);
      return f.handle.await();
    });
    sleep_for(1ms);
    awaiter.raise(first_error());
    CHECK(!move_on_after(1ms, [&] { f.handle.await(); }));
    f.handle.schedule(6);
    CHECK(awaiter.await() == 6);
  });
}

TEST_CASE("fiber::await(): a remote end after an interrupted await ends no other wait", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    CHECK(!move_on_after(1ms, [&] { f.handle.await(); }));
    auto neighbour = spin([] { return suspend<std::string>(); });
    snooze();
    f.handle.schedule(6);
    std::thread([&] { f.handle.await(); }).join();  // it has ended, and told whoever it should
    const auto begin = motet::clock::now();
    sleep_for(10ms);
    CHECK(motet::clock::now() - begin >= 10ms);
    neighbour.schedule(std::string("its own"));
    CHECK(neighbour.await() == "its own");
  });
}

TEST_CASE("fiber::await() on a stuck thread can be interrupted", "[await]") {
  run_here([] {
    auto never = spin([] { sleep(); });
    snooze();
    bool in_time = true;
    std::thread remote(
        [&] { run_here([&] { in_time = move_on_after(5ms, [&] { never.await(); }); }); });
    remote.join();  // this thread looks at no mail until then
    CHECK_FALSE(in_time);
    never.cancel();
    CHECK_THROWS_AS(never.await(), fiber_cancelled);
  });
}

TEST_CASE("fiber::await() returns either the end or the interruption if they coincide",
          "[await][stress]") {
  run_here([] {
    const auto rounds = testing::scaled(10'000, 300);
    box<fiber_ref> mailbox;
    std::atomic<bool> finished{false};
    strangers threads;
    threads.start_runtime([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        mailbox.put(spin([] { snooze(); }));
        snooze();
        if (i % 8 == 0) sleep_for(0ns);
      }
      while (!finished) sleep_for(100us);
    });
    std::size_t ends_seen = 0;
    std::size_t interruptions = 0;
    while (ends_seen + interruptions < rounds) {
      const auto next = mailbox.take();
      if (!next) {
        snooze();
        continue;
      }
      auto awaiter = spin([&] { next->await(); });
      snooze();
      if ((ends_seen + interruptions) % 2 == 0) awaiter.raise(first_error());
      try {
        awaiter.await();
        ++ends_seen;
      } catch (const first_error&) {
        ++interruptions;
      }
    }
    finished = true;
    threads.join();
    CHECK(ends_seen + interruptions == rounds);
  });
}

TEST_CASE("fiber::await() loses neither the remote end nor the interruption", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    auto awaiter = spin([&] {
      const int value = f.handle.await();
      CHECK_THROWS_AS(checkpoint(), first_error);
      return value;
    });
    snooze();
    sleep_for(1ms);  // the other thread knows that it is awaited
    // This thread looks at no mail until both are there.
    std::thread([&] { awaiter.raise(first_error()); }).join();
    std::thread([&] {
      f.handle.schedule(7);
      f.handle.await();
    }).join();
    CHECK(awaiter.await() == 7);
  });
}

TEST_CASE("fiber::await(): two threads can await each other's fibers", "[await]") {
  struct side {
    std::promise<fiber<int>> offer;
    std::shared_future<fiber<int>> handle = offer.get_future().share();
    int value = 0;
  };
  std::array<side, 2> sides;
  strangers peers;
  for (std::size_t i = 0; i < 2; ++i) {
    peers.start_runtime([&sides, i] {
      sides[i].offer.set_value(spin([i] {
        for (int rounds = 0; rounds < 100; ++rounds) snooze();
        return static_cast<int>(i) + 1;
      }));
      sides[i].value = sides[1 - i].handle.get().await();
      suspend();
    });
  }
  peers.join();
  CHECK(sides[0].value == 2);
  CHECK(sides[1].value == 1);
}

TEST_CASE("fiber::await() on another thread uses no CPU time while it waits", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    std::thread later([&] {
      std::this_thread::sleep_for(20ms);
      f.handle.schedule(1);
    });
    const std::clock_t start = std::clock();
    CHECK(f.handle.await() == 1);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    later.join();
    CHECK(seconds < 0.01);
  });
}

TEST_CASE("fiber::await() on another thread's main fiber ends when that runtime does",
          "[await][main]") {
  // On failure the awaiter is left behind, so that this test says so instead of hanging.
  for (const bool with_runtime : {false, true}) {
    auto main = std::make_shared<std::promise<fiber_ref>>();
    auto dismissed = std::make_shared<std::promise<void>>();
    auto finish = std::make_shared<std::promise<void>>();
    auto finished = finish->get_future();
    std::thread home([main, dismissed] {
      run(strangers::quiet(), [&] {
        main->set_value(current());
        dismissed->get_future().wait();
        snooze();
      });
    });
    auto handle = main->get_future().get();
    std::thread awaiter([finish, with_runtime, handle] {
      const auto await = [&] { handle.await(); };
      if (with_runtime) {
        run(strangers::quiet(), await);
      } else {
        await();
      }
      finish->set_value();
    });
    std::this_thread::sleep_for(10ms);
    dismissed->set_value();
    home.join();
    const bool told = finished.wait_for(2s) == std::future_status::ready;
    CHECK(told);
    if (told) {
      awaiter.join();
    } else {
      awaiter.detach();
    }
  }
}

TEST_CASE("fiber::await(): a failure awaited by another thread is not the parent's as well",
          "[await]") {
  run(strangers::quiet(), [] {
    event go;
    promise<fiber_ref> handle_promise;
    std::atomic<bool> parent_told{false};
    thread remote(strangers::quiet(), [&] {
      const auto child = spin([&] {
        go.wait();
        throw first_error();
      });
      handle_promise.set_value(child);
      try {
        sleep();
      } catch (const first_error&) {
        parent_told = true;
      }
    });
    const fiber_ref failing = handle_promise.get_future().get();
    auto awaiting = spin([&] { CHECK_THROWS_AS(failing.await(), first_error); });
    remote.call([] {});  // there and back: the wait has begun there
    remote.call([] {});
    go.set();
    awaiting.await();
    remote.cancel();
    CHECK_THROWS_AS(remote.await(), fiber_cancelled);
    CHECK_FALSE(parent_told);
  });
}

TEST_CASE("fiber::await(): a failure reaches the parent after the remote awaiter gave up",
          "[failures]") {
  fiber_ref target;
  std::atomic<int> phase{0};
  std::thread remote([&] {
    run([&] {
      while (phase < 1) std::this_thread::yield();
      CHECK_FALSE(move_on_after(10ms, [&] { target.await(); }));
      phase = 2;
      while (phase < 3) std::this_thread::yield();
    });
  });
  bool notified = false;
  run([&] {
    auto child = spin([&] {
      while (phase < 2) std::this_thread::yield();  // a busy thread does not look at its mail
      throw std::runtime_error("the child's");
    });
    target = child;
    phase = 1;
    try {
      shield([&] {
        for (int i = 0; i < 100; ++i) snooze();
      });
      snooze();
    } catch (const std::runtime_error&) {
      notified = true;
    }
    child = {};
    phase = 3;
  });
  remote.join();
  target = {};
  CHECK(notified);
}
