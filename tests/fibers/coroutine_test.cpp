// SPDX-License-Identifier: MIT
// Coroutines that await fibers and futures, and fibers that await coroutines.
#include <chrono>
#include <coroutine>
#include <future>
#include <memory>
#include <motet/fibers/coroutine.hpp>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fibers/task.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::settle;
using testing::task;
using testing::until_waiting;

namespace {

task<int> value_of(future<int> answer) {
  co_return co_await answer;
}

task<int> sum_of(future<int> a, future<int> b) {
  const int first = co_await value_of(a);
  const int second = co_await value_of(b);
  co_return first + second;
}

/// What another thread resumes, some time after it was awaited.
struct elsewhere {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waits) {
    std::thread& target = thread;  // the coroutine may go on before the assignment
    target = std::thread([waits] {
      std::this_thread::sleep_for(2ms);
      waits.resume();
    });
  }
  void await_resume() const {}
  std::thread& thread;
};

}  // namespace

TEST_CASE("co_await: a fiber awaits a coroutine that awaits futures", "[coroutine]") {
  run([] {
    promise<int> a;
    promise<int> b;
    auto waits = spin([&] { return await_coro(sum_of(a.get_future(), b.get_future())); });
    until_waiting(waits);
    a.set_value(1);
    settle();
    CHECK(waits.state() == fiber_state::waiting);
    b.set_value(2);
    CHECK(waits.await() == 3);
    CHECK(await_coro(sum_of(a.get_future(), b.get_future())) == 3);  // without a wait
    CHECK(await_coro(a.get_future()) == 1);                          // whatever co_await takes
  });
}

TEST_CASE("co_await of fibers and futures returns their value or throws their failure",
          "[coroutine]") {
  run([] {
    const auto body = [](int& object) -> task<int> {
      auto source = spin([] {
        snooze();
        return std::make_unique<int>(7);
      });
      const std::unique_ptr<int>& view = co_await source;
      CHECK(*view == 7);
      const std::unique_ptr<int> value = co_await std::move(source);
      CHECK(*value == 7);
      co_await spin([] { sleep_for(1ms); });
      fiber_ref failing = spin([] { throw oops(); });
      CHECK_THROWS_AS(co_await failing, oops);
      promise<std::unique_ptr<int>> pointer;
      pointer.set_value(std::make_unique<int>(8));
      const std::unique_ptr<int> target = co_await pointer.get_future();
      CHECK(*target == 8);
      promise<int&> refers;
      auto later = spin([&] { refers.set_value(object); });
      int& reference = co_await refers.get_future();
      CHECK(&reference == &object);
      promise<void> abandoned;
      auto orphan = abandoned.get_future();
      abandoned = {};
      CHECK_THROWS_AS(co_await orphan, std::future_error);
      co_return 1;
    };
    int object = 0;
    CHECK(await_coro(body(object)) == 1);
  });
}

TEST_CASE("co_await: a coroutine stays on the fiber that awaits it", "[coroutine]") {
  run([] {
    static const fiber_local<int> number(0);
    number.get() = 5;
    promise<void> go;
    const auto body = [&]() -> task<int> {
      const fiber_ref caller = current();
      co_await go.get_future();
      CHECK(current() == caller);
      CHECK(number.get() == 5);
      mutex lock;
      lock.lock();
      co_await spin([] { snooze(); });
      lock.unlock();
      sleep_for(1ms);  // the fiber waits, too
      co_return 0;
    };
    auto later = spin([&] { go.set_value(); });
    await_coro(body());
  });
}

TEST_CASE("co_await throws each interruption inside the waiting coroutine", "[coroutine]") {
  run([] {
    promise<void> never;
    int interruptions = 0;
    bool cleaned_up = false;
    const auto body = [&]() -> task<int> {
      struct cleaner {
        bool& done;
        ~cleaner() {
          shield([] { snooze(); });
          done = true;
        }
      } cleaning{cleaned_up};
      for (int i = 0; i < 3; ++i) {
        try {
          co_await never.get_future();
        } catch (const cancelled&) {
          ++interruptions;
        }
      }
      co_await never.get_future();
      co_return 0;
    };
    auto waits = spin([&] { await_coro(body()); });
    until_waiting(waits);
    waits.cancel("enough");
    CHECK_THROWS_AS(waits.await(), fiber_cancelled);
    CHECK(interruptions == 3);
    CHECK(cleaned_up);

    CHECK_FALSE(move_on_after(1ms, [&] { await_coro(body()); }));
    auto raised = spin([&] {
      return await_coro([&]() -> task<int> {
        try {
          co_await never.get_future();
        } catch (const oops&) {
          co_return 1;
        }
        co_return 0;
      }());
    });
    until_waiting(raised);
    raised.raise(oops());
    CHECK(raised.await() == 1);
  });
}

TEST_CASE("co_await: a child of the starting fiber resumes a coroutine that no fiber awaits",
          "[coroutine]") {
  run([] {
    promise<int> a;
    promise<int> b;
    task<int> alone = sum_of(a.get_future(), b.get_future());
    alone.start();
    CHECK_FALSE(alone.done());
    CHECK(current().children().size() == 1);
    a.set_value(1);
    settle();
    CHECK(current().children().size() == 1);  // the same one
    b.set_value(2);
    settle();
    CHECK(alone.done());
    CHECK(alone.value() == 3);
    CHECK(current().children().empty());
  });
}

TEST_CASE("co_await is cancelled when the fiber that started the coroutine ends", "[coroutine]") {
  run([] {
    promise<int> never;
    std::optional<task<int>> started_task;
    std::optional<task<int>> not_begun;
    spin([&] {
      started_task.emplace(value_of(never.get_future()));
      started_task->start();
      settle();
      not_begun.emplace(value_of(never.get_future()));
      not_begun->start();  // its driver has not run yet when this fiber ends
    }).await();
    REQUIRE(started_task->done());
    REQUIRE(not_begun->done());
    CHECK_THROWS_AS(not_begun->value(), fiber_cancelled);
    try {
      started_task->value();
      FAIL("it went on");
    } catch (const cancelled&) {
    }
    // In a fiber that is dying already.
    std::optional<task<int>> late;
    auto dying = spin([&] {
      struct last {
        std::optional<task<int>>& begins;
        future<int> answer;
        ~last() {
          begins.emplace(value_of(answer));
          begins->start();
        }
      } at_end{late, never.get_future()};
      sleep();
    });
    until_waiting(dying);
    dying.cancel();
    CHECK_THROWS_AS(dying.await(), fiber_cancelled);
    REQUIRE(late->done());
    CHECK(late->error() != nullptr);
  });
}

TEST_CASE("co_await: a coroutine may be destroyed while it waits", "[coroutine]") {
  run([] {
    promise<int> a;
    {
      task<int> dropped = value_of(a.get_future());
      dropped.start();
      settle();
    }
    settle();
    CHECK(current().children().empty());  // its driver has noticed
    a.set_value(1);
    // By the coroutine that awaits the first of two.
    const auto first_of = [](future<int> x, future<int> never) -> task<int> {
      {
        task<int> slow = value_of(never);
        slow.start();
      }
      co_return co_await value_of(x);
    };
    promise<int> b;
    promise<int> c;
    auto waits = spin([&] { return await_coro(first_of(b.get_future(), c.get_future())); });
    until_waiting(waits);
    c.set_value(0);
    b.set_value(4);
    CHECK(waits.await() == 4);
  });
}

TEST_CASE("co_await goes on after the coroutine that started the waiting one has ended",
          "[coroutine]") {
  run([] {
    promise<int> a;
    std::optional<task<int>> detached;
    const auto starts = [&]() -> task<int> {
      detached.emplace(value_of(a.get_future()));
      detached->start();
      co_return 1;
    };
    CHECK(await_coro(starts()) == 1);
    CHECK_FALSE(detached->done());
    const auto nests = [&]() -> task<int> {
      promise<int> b;
      task<int> inner = value_of(b.get_future());
      const auto starts_inner = [&]() -> task<int> {
        inner.start();
        co_return 2;
      };
      CHECK(await_coro(starts_inner()) == 2);  // inside of another await_coro()
      b.set_value(3);
      while (!inner.done()) co_await spin([] { snooze(); });
      co_return inner.value();
    };
    CHECK(await_coro(nests()) == 3);
    a.set_value(4);
    settle();
    REQUIRE(detached->done());
    CHECK(detached->value() == 4);
  });
}

TEST_CASE("co_await loses no value when an interruption arrives with it", "[coroutine]") {
  run([] {
    promise<int> a;
    int value = 0;
    auto waits = spin([&] {
      await_coro([&]() -> task<int> {
        value = co_await a.get_future();
        co_return 0;
      }());
      snooze();  // throws
    });
    until_waiting(waits);
    a.set_value(5);
    waits.raise(oops());
    CHECK_THROWS_AS(waits.await(), oops);
    CHECK(value == 5);
  });
}

TEST_CASE("co_await: terminate() does not interrupt coroutines resumed by other threads",
          "[coroutine][threads]") {
  run([] {
    std::thread helper;
    auto waits = spin([&] {
      return await_coro([&]() -> task<int> {
        co_await elsewhere{helper};
        co_return 9;
      }());
    });
    until_waiting(waits);
    waits.terminate(0ms);
    CHECK(waits.await() == 9);
    helper.join();
  });
}

TEST_CASE("co_await: several coroutines wait in turn on one fiber", "[coroutine]") {
  run([] {
    std::vector<promise<int>> promises(5);
    const auto body = [&]() -> task<int> {
      std::vector<task<int>> parts;
      for (auto& promise_slot : promises) {
        parts.push_back(value_of(promise_slot.get_future()));
        parts.back().start();
      }
      promise<void> last;
      co_await spin([&] {
        for (std::size_t i = promises.size(); i > 0; --i) promises[i - 1].set_value(1);
      });
      int sum = 0;
      for (auto& part : parts) {
        while (!part.done()) co_await spin([] { snooze(); });
        sum += part.value();
      }
      co_return sum;
    };
    CHECK(await_coro(body()) == 5);
  });
}

TEST_CASE("co_await: a coroutine resumed elsewhere ends before the awaiting fiber continues",
          "[coroutine][threads]") {
  run([] {
    std::thread helper;
    const auto body = [&]() -> task<int> {
      co_await elsewhere{helper};
      co_return 9;
    };
    auto waits = spin([&] { return await_coro(body()); });
    until_waiting(waits);
    waits.cancel();
    CHECK_THROWS_AS(
        [&] {
          const int result = std::move(waits).await();
          CHECK(result == 9);
          throw oops();
        }(),
        oops);
    helper.join();
    const auto orphan = [&]() -> task<int> {
      co_await elsewhere{helper};
      promise<void> never;
      co_await never.get_future();  // on a thread that has no fibers
      co_return 0;
    };
    CHECK_THROWS_AS(await_coro(orphan()), std::logic_error);
    helper.join();
    CHECK_THROWS_AS(await_coro([]() -> task<int> {
                      throw oops();
                      co_return 0;
                    }()),
                    oops);
  });
}

TEST_CASE("co_await receives values from other threads", "[coroutine][threads]") {
  const int many = static_cast<int>(testing::scaled(20'000, testing::under_tsan ? 200 : 2'000));
  thread_pool pool(2);
  run([&] {
    group workers;
    long sum = 0;
    for (int i = 0; i < 4; ++i) {
      workers.spin([&] {
        sum += await_coro([&]() -> task<int> {
          int subtotal = 0;
          for (int index = 0; index < many; ++index) {
            subtotal += co_await pool.submit([index] { return index % 3; });
          }
          co_return subtotal;
        }());
      });
    }
    workers.await_all();
    long expected_sum = 0;
    for (int index = 0; index < many; ++index) expected_sum += index % 3;
    CHECK(sum == 4 * expected_sum);
  });
}
