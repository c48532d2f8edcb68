// SPDX-License-Identifier: MIT
// Actors, promises, pools of things, rates and repetition, on one thread.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <limits>
#include <memory>
#include <motet/actor.hpp>
#include <motet/every.hpp>
#include <motet/future.hpp>
#include <motet/motet.hpp>
#include <motet/rate_limiter.hpp>
#include <motet/resource_pool.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEST_CASE("an actor receives in order, or what it asks for first", "[actor]") {
  run([] {
    std::vector<int> got;
    actor<int> numbers([&](actor<int>::inbox& messages) {
      got.push_back(messages.receive_if([](int n) { return n % 2 == 0; }));
      got.push_back(messages.receive_if([](int n) { return n > 4; }));
      for (int i = 0; i < 4; ++i) got.push_back(messages.receive());
    });
    for (int n : {1, 2, 3, 4, 5, 6}) numbers.send(n);
    numbers.await();
    CHECK(got == std::vector<int>{2, 5, 1, 3, 4, 6});
  });
}

TEST_CASE("messages move, and what is passed over is not lost", "[actor]") {
  run([] {
    std::string order;
    actor<std::unique_ptr<int>> numbers([&](auto& messages) {
      const bool found = move_on_after(
          1ms, [&] { messages.receive_if([](const std::unique_ptr<int>& n) { return *n == 9; }); });
      CHECK_FALSE(found);
      order += static_cast<char>('0' + *messages.receive());
      order += static_cast<char>('0' + *messages.receive());
    });
    numbers.send(std::make_unique<int>(1));
    numbers.send(std::make_unique<int>(2));
    numbers.await();
    CHECK(order == "12");
  });
}

TEST_CASE("a bounded actor makes its senders wait", "[actor]") {
  run([] {
    event go;
    actor<int> slow({.name = "slow", .capacity = 2}, [&](actor<int>::inbox& messages) {
      go.wait();
      for (int i = 0; i < 4; ++i) messages.receive();
    });
    int sent = 0;
    auto sender = spin([&] {
      for (int i = 0; i < 4; ++i) {
        slow.send(i);
        ++sent;
      }
    });
    settle();
    CHECK(sent == 2);
    CHECK_FALSE(slow.try_send(9));
    go.set();
    sender.await();
    slow.await();
    CHECK(sent == 4);
  });
}

TEST_CASE("senders learn that an actor has ended", "[actor]") {
  run([] {
    actor<int> brief({.capacity = 0}, [](auto& messages) { messages.receive(); });
    bool told = false;
    auto waiting = spin([&] {
      try {
        brief.send(1);
        brief.send(2);
      } catch (const channel_closed&) {
        told = true;
      }
    });
    brief.await();
    waiting.await();
    CHECK(told);
    CHECK_THROWS_AS(brief.try_send(3), channel_closed);

    actor<int> failing([](auto& messages) {
      messages.receive();
      throw std::runtime_error("failed");
    });
    failing.send(1);
    CHECK_THROWS_AS(failing.await(), std::runtime_error);
    CHECK_THROWS_AS(failing.send(1), channel_closed);

    actor<int> unstarted([](auto&) { FAIL("it was cancelled before"); });
    unstarted.cancel("at once");
    CHECK_THROWS_AS(unstarted.await(), fiber_cancelled);
    CHECK_THROWS_AS(unstarted.send(1), channel_closed);
  });
}

TEST_CASE("what an actor never received is destroyed with it", "[actor]") {
  run([] {
    struct question {
      promise<int> answer;
    };
    actor<question> brief([](auto& questions) { questions.receive().answer.set_value(1); });
    question first;
    question second;
    const auto heard = first.answer.get_future();
    const auto unheard = second.answer.get_future();
    brief.send(std::move(first));
    brief.send(std::move(second));
    brief.await();
    CHECK(heard.get() == 1);
    CHECK_THROWS_AS(unheard.get(), std::future_error);
  });
}

TEST_CASE("a promise is kept once", "[future]") {
  run([] {
    promise<std::string> told;
    const future<std::string> seen = told.get_future();
    CHECK_FALSE(seen.ready());
    std::string order;
    group waiting;
    for (int i = 0; i < 3; ++i) waiting.spin([&] { order += seen.get(); });
    settle();
    CHECK(told.set_value("x"));
    CHECK_FALSE(told.set_value("y"));
    CHECK_FALSE(told.set_exception(std::make_exception_ptr(std::runtime_error("late"))));
    waiting.await_all();
    CHECK(order == "xxx");
    CHECK(future<std::string>(seen).get() == "x");
    CHECK_THROWS_AS(seen.get(), std::logic_error);  // taken by the line before
  });
}

TEST_CASE("a promise can fail, be dropped, be cancelled, or be empty", "[future]") {
  run([] {
    promise<int> failing;
    failing.set_exception(std::make_exception_ptr(std::out_of_range("too far")));
    CHECK_THROWS_AS(failing.get_future().get(), std::out_of_range);

    std::optional<promise<int>> dropped(std::in_place);
    const future<int> seen = dropped->get_future();
    dropped.reset();
    CHECK_THROWS_AS(seen.get(), std::future_error);

    promise<int> given_up;
    auto maker = spin([&] {
      try {
        sleep();
      } catch (...) {
        given_up.set_exception(std::current_exception());
        throw;
      }
    });
    snooze();
    maker.cancel("enough");
    CHECK_THROWS_AS(given_up.get_future().get(), fiber_cancelled);

    promise<void> nothing;
    promise<void> moved(std::move(nothing));
    CHECK_THROWS_AS(nothing.set_value(), std::logic_error);
    CHECK(moved.set_value());
    moved.get_future().get();
    CHECK_THROWS_AS(future<int>().get(), std::logic_error);

    struct sharp {
      explicit sharp(int n) {
        if (n > 0) throw std::runtime_error("cut");
      }
    };
    promise<sharp> cut;
    CHECK_THROWS_AS(cut.set_value(1), std::runtime_error);
    CHECK_THROWS_AS(cut.get_future().get(), std::runtime_error);
    maker.cancel("it has ended");
  });
}

TEST_CASE("a pool makes what it lends when it must, and lends it again", "[pool]") {
  run([] {
    int made = 0;
    resource_pool<int> pool(2, [&] { return ++made; });
    {
      auto first = pool.acquire();
      auto second = pool.acquire();
      CHECK(*first == 1);
      CHECK(*second == 2);
      CHECK_FALSE(move_on_after(1ms, [&] { (void)pool.acquire(); }));
      auto waiting = spin([&] { return *pool.acquire(); });
      settle();
      second.discard();
      CHECK_THROWS_AS(*second, std::logic_error);
      CHECK_THROWS_AS(second.discard(), std::logic_error);
      CHECK(waiting.await() == 3);
    }
    auto moved = pool.acquire();
    const auto kept = std::move(moved);
    CHECK(made == 3);
    CHECK_THROWS_AS(resource_pool<int>(0, [] { return 1; }), std::invalid_argument);
    CHECK_THROWS_AS(resource_pool<int>(1, nullptr), std::invalid_argument);
    constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
    for (const std::size_t too_many : {all, all / 4}) {
      CHECK_THROWS_AS(resource_pool<int>(too_many, [] { return 1; }), std::invalid_argument);
    }
  });
}

TEST_CASE("what is not healthy is replaced, and no failure costs a slot", "[pool]") {
  run([] {
    int made = 0;
    bool works = false;
    resource_pool<int> pool(
        1,
        [&] {
          sleep_for(1ms);
          if (!works) throw std::runtime_error("refused");
          return ++made;
        },
        [](const int& n) {
          snooze();
          if (n == 2) throw std::runtime_error("asked in vain");
          return n > 2;
        });
    for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(pool.acquire(), std::runtime_error);
    CHECK_FALSE(move_on_after(100us, [&] { (void)pool.acquire(); }));
    works = true;
    CHECK(*pool.acquire() == 1);
    CHECK(*pool.acquire() == 2);  // 1 was not healthy
    CHECK_THROWS_AS(pool.acquire(), std::runtime_error);
    CHECK(*pool.acquire() == 3);
    CHECK(*pool.acquire() == 3);
  });
}

TEST_CASE("100 a second with a burst of 10: 110 take a second", "[rate]") {
  run([] {
    const int parts = testing::on_sim() ? 1 : 10;  // in a tenth of the time
    rate_limiter rate(static_cast<std::size_t>(100 * parts), 1s, 10);
    const auto begin = clock::now();
    for (int i = 0; i < 110; ++i) rate.acquire();
    const auto took = (clock::now() - begin) * parts;
    CHECK(took >= 999ms);
    if (testing::on_sim()) {
      CHECK(took < 1'001ms);
      CHECK_FALSE(rate.try_acquire());
    }
    sleep_for(1000ms / parts);
    CHECK(rate.try_acquire(10));
    if (testing::on_sim()) CHECK_FALSE(rate.try_acquire());
    CHECK_THROWS_AS(rate.acquire(11), std::invalid_argument);
    CHECK_THROWS_AS(rate.acquire(0), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(0, 1s), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(1, 0s), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(1, 1s, 0), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(1, 1h, 10'000'000), std::invalid_argument);
    CHECK_THROWS_AS(rate_limiter(2, clock::duration::max()), std::invalid_argument);
    rate_limiter boundless(std::numeric_limits<std::size_t>::max(), clock::duration::max());
    CHECK(boundless.try_acquire());
    CHECK(rate_limiter(1'000'000, 1h, 10'000'000).try_acquire());
  });
}

TEST_CASE("who is interrupted while waiting for a rate takes nothing", "[rate]") {
  run([] {
    rate_limiter rate(1, 200ms);
    rate.acquire();
    const auto begin = clock::now();
    for (int i = 0; i < 3; ++i) CHECK_FALSE(move_on_after(1ms, [&] { rate.acquire(); }));
    rate.acquire();
    if (testing::on_sim()) CHECK(clock::now() - begin < 201ms);
  });
}

TEST_CASE("a rate holds for threads without fibers, too", "[rate]") {
  rate_limiter rate(1'000, 1s);
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) rate.acquire();
  });
  for (int i = 0; i < 10; ++i) rate.acquire();
  other.join();
  CHECK(std::chrono::steady_clock::now() - begin >= 19ms);
}

TEMPLATE_TEST_CASE("a rate that ends is thrown at all who wait for it, at once", "[rate]",
                   rate_limiter, motet::local::rate_limiter) {
  run([] {
    std::optional<TestType> rate(std::in_place, 1, 1h);
    rate->acquire();
    std::vector<fiber<void>> waiting;
    for (int i = 0; i < 3; ++i) waiting.push_back(spin([&] { rate->acquire(); }));
    settle();
    CHECK_FALSE(rate->try_acquire());
    const auto begin = clock::now();
    rate.reset();
    for (auto& each : waiting) CHECK_THROWS_AS(each.await(), std::logic_error);
    CHECK(clock::now() - begin < 1s);
  });
}

TEST_CASE("a rate that ends is thrown at threads without fibers as well", "[rate]") {
  std::optional<rate_limiter> rate(std::in_place, 1, 1h);
  rate->acquire();
  std::atomic<int> thrown{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      try {
        rate->acquire();
      } catch (const std::logic_error&) {
        ++thrown;
      }
    });
  }
  std::this_thread::sleep_for(20ms);  // they wait by now
  rate.reset();
  for (std::thread& each : threads) each.join();
  CHECK(thrown == 3);
}

TEMPLATE_TEST_CASE("a pool that ends is thrown at who waits for it, and what it lent goes on",
                   "[pool]", resource_pool<std::shared_ptr<int>>,
                   motet::local::resource_pool<std::shared_ptr<int>>) {
  run([] {
    std::weak_ptr<int> last;
    std::optional<TestType> pool(std::in_place, 2, [&] {
      auto made = std::make_shared<int>(7);
      last = made;
      return made;
    });
    {
      const auto lent = pool->acquire();
      std::weak_ptr<int> idle;
      {
        const auto other = pool->acquire();
        idle = last;
      }
      CHECK_FALSE(idle.expired());
      std::optional kept(pool->acquire());
      auto waiting = spin([&] { (void)pool->acquire(); });
      settle();
      pool.reset();
      CHECK_THROWS_AS(waiting.await(), std::logic_error);
      CHECK_FALSE(idle.expired());
      kept.reset();
      CHECK(idle.expired());
      CHECK(**lent == 7);
    }
    CHECK(last.expired());
  });
}

TEST_CASE("every calls once a period, and leaves out what it missed", "[every]") {
  run([] {
    const auto begin = clock::now();
    std::vector<clock::duration> at;
    every(10ms, [&] {
      at.push_back(clock::now() - begin);
      if (at.size() == 2) sleep_for(25ms);
      return at.size() < 4;
    });
    REQUIRE(at.size() == 4);
    CHECK(at[0] >= 10ms);
    CHECK(at[1] >= 20ms);
    CHECK(at[2] >= 50ms);  // those at 30 and 40 were missed
    CHECK(at[3] >= 60ms);
    if (testing::on_sim()) CHECK(at[3] < 61ms);

    const auto again = clock::now();
    int calls = 0;
    every({.period = 10ms, .when = pace::delayed}, [&] {
      sleep_for(5ms);
      return ++calls < 3;
    });
    CHECK(clock::now() - again >= 45ms);
    CHECK_THROWS_AS(every(0ms, [] {}), std::invalid_argument);
    CHECK_FALSE(
        move_on_after(1ms, [] { every(std::chrono::hours::max(), [] { FAIL("never"); }); }));
  });
}

TEST_CASE("an exception ends every, unless somebody takes it", "[every]") {
  run([] {
    const auto fails = [] { throw std::runtime_error("once"); };
    CHECK_THROWS_AS(every(1ms, fails), std::runtime_error);
    int failures = 0;
    const auto begin = clock::now();
    every({.period = 1ms, .on_error = [&](const std::exception_ptr&) { ++failures; }}, [&] {
      if (failures < 5) throw std::runtime_error("again");
      return false;
    });
    CHECK(failures == 5);
    CHECK(clock::now() - begin >= 6ms);
    CHECK_FALSE(move_on_after(1ms, [&] {
      every({.period = 1us, .on_error = [](const std::exception_ptr&) {}}, [] { sleep(); });
    }));
    CHECK_THROWS_AS(
        every({.period = 1ms, .on_error = [](const std::exception_ptr&) { throw 7; }}, fails), int);
  });
}
