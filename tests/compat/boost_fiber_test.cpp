// SPDX-License-Identifier: MIT
// Boost.Fiber's names on motet's fibers.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <motet/compat/boost_fiber.hpp>
#include <motet/motet.hpp>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace std::chrono_literals;
using boost::fibers::channel_op_status;
using testing::oops;
using testing::run_here;
using testing::words;

namespace {

template <typename F>
std::error_code code_of(F f) {
  try {
    f();
  } catch (const boost::fibers::fiber_error& error) {
    return error.code();
  }
  return {};
}

const auto past = std::chrono::system_clock::now() - 1h;

}  // namespace

TEST_CASE("boost::fibers::fiber is called with its arguments, and joined") {
  run_here([] {
    words log;
    std::string word = "borrowed";
    boost::fibers::fiber empty_fiber;
    CHECK(!empty_fiber.joinable());
    CHECK(empty_fiber.get_id() == boost::fibers::fiber::id());
    boost::fibers::fiber fiber(
        [&](std::string value, std::string& reference, std::unique_ptr<int> pointer) {
          log = {value, reference, std::to_string(*pointer)};
          boost::this_fiber::yield();
          reference = "changed";
        },
        "moved", std::ref(word), std::make_unique<int>(3));
    CHECK(log.empty());
    const auto id = fiber.get_id();
    CHECK((id != boost::this_fiber::get_id() && id));
    boost::fibers::fiber second(std::move(fiber));
    CHECK((!fiber.joinable() && second.joinable() && second.get_id() == id));
    swap(fiber, second);
    fiber.join();
    CHECK(log == words{"moved", "borrowed", "3"});
    CHECK(word == "changed");
    CHECK(code_of([&] { fiber.join(); }) == std::errc::invalid_argument);
    CHECK(code_of([&] { fiber.detach(); }) == std::errc::invalid_argument);
    std::ostringstream stream;
    stream << fiber.get_id();
    CHECK(stream.str() == "{not-valid}");
  });
}

TEST_CASE("boost::fibers::launch::dispatch begins the fiber before its constructor returns") {
  run_here([] {
    words log;
    const auto say = [&](const char* word) { log.emplace_back(word); };
    boost::fibers::fiber later(boost::fibers::launch::post, say, "posted");
    CHECK(log.empty());
    boost::fibers::fiber dispatched(boost::fibers::launch::dispatch, say, "dispatched");
    CHECK(log == words{"posted", "dispatched"});
    later.join();
    dispatched.join();
  });
}

TEST_CASE("boost::fibers::fiber that is detached outlives the fiber that started it") {
  words log;
  run_here([&] {
    boost::fibers::fiber([&] {
      boost::fibers::fiber([&] {
        boost::this_fiber::sleep_for(5ms);
        log.emplace_back("inner");
      }).detach();
      log.emplace_back("outer");
    }).join();
    CHECK(log == words{"outer"});
  });
  CHECK(log == words{"outer", "inner"});
}

TEST_CASE("boost::fibers::fiber may start fibers when main has returned") {
  words log;
  run_here([&] {
    boost::fibers::fiber([&] {
      boost::this_fiber::sleep_for(5ms);
      boost::fibers::fiber([&] { log.emplace_back("joined"); }).join();
      boost::fibers::fiber([&] {
        boost::this_fiber::sleep_for(5ms);
        log.emplace_back("detached");
      }).detach();
      log.emplace_back("outer");
    }).detach();
  });
  CHECK(log == words{"joined", "outer", "detached"});
}

TEST_CASE("boost::fibers::fiber takes a stack that was used before") {
  run_here([] {
    const auto place_of_a_stack = [] {
      const void* address = nullptr;
      boost::fibers::fiber([&address] { address = __builtin_frame_address(0); }).join();
      return address;
    };
    const void* first = place_of_a_stack();
    CHECK((place_of_a_stack() == first || testing::disabled("stack_reuse")));
    boost::fibers::fiber(std::allocator_arg, boost::fibers::fixedsize_stack(1), [] {}).join();
  });
}

TEST_CASE("boost::fibers::fiber delays what interrupts its start or its join") {
  run_here([] {
    bool ended = false;
    const auto joiner = motet::spin([&] {
      boost::fibers::fiber fiber(boost::fibers::launch::dispatch, [&] {
        boost::this_fiber::sleep_for(5ms);
        ended = true;
      });
      fiber.join();
      CHECK(ended);
      CHECK_THROWS_AS(motet::snooze(), oops);
    });
    motet::spin([&] { joiner.raise(oops()); });
    joiner.await();
  });
}

TEST_CASE("boost::fibers::fiber::join() throws what a child of the fiber has thrown") {
  run_here([] {
    boost::fibers::fiber fiber([] {
      motet::spin([] { throw oops(); });
      boost::this_fiber::sleep_for(1ms);
    });
    CHECK_THROWS_AS(fiber.join(), oops);
    CHECK(!fiber.joinable());
  });
}

TEST_CASE("boost::fibers::fiber is not interrupted by motet") {
  bool ended = false;
  CHECK_THROWS_AS(run_here([&] {
                    boost::fibers::fiber([&] {
                      boost::this_fiber::sleep_until(std::chrono::system_clock::now() + 5ms);
                      boost::this_fiber::sleep_until(past);
                      ended = true;
                    }).detach();
                    throw oops();
                  }),
                  oops);
  CHECK(ended);
}

TEST_CASE("boost::fibers::fiber has the stack of its allocator") {
  run_here([] {
    const auto fill = [](std::size_t size) {
      const auto room = std::make_unique<char[]>(size);
      volatile char* place = static_cast<char*>(__builtin_alloca(size));
      for (std::size_t position = 0; position < size; position += 512) place[position] = 1;
      return place[0];
    };
    const boost::fibers::fixedsize_stack large(1 << 20);
    boost::fibers::fiber(std::allocator_arg, large, fill, 900 << 10).join();
    boost::fibers::fiber(boost::fibers::launch::dispatch, std::allocator_arg,
                         boost::fibers::protected_fixedsize_stack(1 << 20), fill, 900 << 10)
        .join();
    CHECK(boost::fibers::async(boost::fibers::launch::post, std::allocator_arg, large, fill,
                               900 << 10)
              .get() == 1);
  });
}

TEST_CASE("boost::fibers::fiber::join() throws in the fiber itself, and works on another thread") {
  run_here([] {
    boost::fibers::fiber fiber;
    std::error_code error;
    fiber = boost::fibers::fiber([&] { error = code_of([&] { fiber.join(); }); });
    boost::this_fiber::yield();
    CHECK(error == std::errc::resource_deadlock_would_occur);
    testing::idle_thread elsewhere;
    elsewhere.thread.call([&] { fiber.join(); });
    CHECK(!fiber.joinable());
  });
}

TEMPLATE_TEST_CASE("boost::fibers mutexes have time limits, and throw for misuse", "",
                   boost::fibers::mutex, boost::fibers::timed_mutex, boost::fibers::recursive_mutex,
                   boost::fibers::recursive_timed_mutex) {
  run_here([] {
    TestType lock;
    CHECK(code_of([&] { lock.unlock(); }) == std::errc::operation_not_permitted);
    std::unique_lock<TestType> guard(lock);
    constexpr bool is_recursive = std::is_same_v<TestType, boost::fibers::recursive_mutex> ||
                                  std::is_same_v<TestType, boost::fibers::recursive_timed_mutex>;
    CHECK(code_of([&] {
            lock.lock();
            lock.unlock();
          }) == (is_recursive ? std::error_code()
                              : make_error_code(std::errc::resource_deadlock_would_occur)));
    bool has_tried = false;
    boost::fibers::fiber([&] {
      CHECK(!lock.try_lock());
      const auto start = motet::clock::now();
      CHECK(!lock.try_lock_for(2ms));
      CHECK(motet::clock::now() - start >= 2ms);
      CHECK(!lock.try_lock_until(past));
      has_tried = true;
      CHECK(lock.try_lock_for(10s));
      lock.unlock();
      CHECK(lock.try_lock_until(past));
      lock.unlock();
    }).detach();
    while (!has_tried) boost::this_fiber::sleep_for(1ms);
    guard.unlock();
    boost::this_fiber::yield();
    guard.lock();
  });
}

TEST_CASE("boost::fibers::condition_variable waits for a notification or for a time") {
  run_here([] {
    boost::fibers::mutex lock;
    boost::fibers::condition_variable condition;
    bool ready = false;
    int waits = 0;  // without a time limit that passes
    boost::fibers::fiber waiter([&] {
      std::unique_lock<boost::fibers::mutex> guard(lock);
      CHECK(condition.wait_for(guard, 1ms) == boost::fibers::cv_status::timeout);
      CHECK(guard.owns_lock());
      CHECK(!condition.wait_for(guard, 1ms, [&] { return ready; }));
      CHECK(!condition.wait_until(guard, past, [&] { return ready; }));
      waits = 1;
      condition.wait(guard, [&] { return ready; });
      CHECK(condition.wait_until(guard, past, [&] { return ready; }));
      waits = 2;
      CHECK(condition.wait_for(guard, 10s) == boost::fibers::cv_status::no_timeout);
    });
    while (waits < 1) boost::this_fiber::sleep_for(1ms);
    {
      const std::lock_guard guard(lock);
      ready = true;
    }
    condition.notify_one();
    while (waits < 2) boost::this_fiber::sleep_for(1ms);
    condition.notify_all();
    waiter.join();

    std::mutex of_threads;
    boost::fibers::condition_variable_any condition_of_any;
    std::unique_lock guard(of_threads);
    CHECK(condition_of_any.wait_for(guard, 1ms) == boost::fibers::cv_status::timeout);
  });
}

TEST_CASE("boost::fibers::barrier lets all of its parties go on at once") {
  run_here([] {
    CHECK(code_of([] { boost::fibers::barrier empty_barrier(0); }) == std::errc::invalid_argument);
    boost::fibers::barrier three(3);
    int last = 0;
    int count = 0;
    const auto come = [&] {
      if (three.wait()) ++last;
      ++count;
    };
    boost::fibers::fiber fiber(come);
    boost::fibers::fiber second(come);
    boost::this_fiber::sleep_for(1ms);
    CHECK(count == 0);
    come();
    fiber.join();
    second.join();
    CHECK((last == 1 && count == 3));
  });
}

TEST_CASE("boost::fibers::buffered_channel pushes and pops, with time limits and an end") {
  run_here([] {
    using strings = boost::fibers::buffered_channel<std::string>;
    CHECK(code_of([] { strings empty_channel(0); }) == std::errc::invalid_argument);
    CHECK(code_of([] { strings three(3); }) == std::errc::invalid_argument);
    strings channel(4);
    std::string item = "kept";
    CHECK(channel.try_pop(item) == channel_op_status::empty);
    CHECK(channel.pop_wait_for(item, 1ms) == channel_op_status::timeout);
    CHECK(channel.pop_wait_until(item, past) == channel_op_status::timeout);
    const std::string text = "copied";
    CHECK(channel.push(text) == channel_op_status::success);
    CHECK(channel.push("moved") == channel_op_status::success);
    CHECK(channel.try_push(text) == channel_op_status::success);
    CHECK(channel.try_push(text) == channel_op_status::full);
    CHECK(channel.push_wait_for(std::move(item), 1ms) == channel_op_status::timeout);
    CHECK(item == "kept");
    CHECK(channel.push_wait_until(item, past) == channel_op_status::timeout);
    CHECK(channel.value_pop() == "copied");
    CHECK(channel.push_wait_until(item, past) == channel_op_status::success);
    CHECK(channel.pop(item) == channel_op_status::success);
    CHECK(item == "moved");
    channel.close();
    CHECK(channel.is_closed());
    CHECK(channel.push(text) == channel_op_status::closed);
    CHECK(channel.try_push(text) == channel_op_status::closed);
    CHECK(channel.push_wait_for(text, 1ms) == channel_op_status::closed);
    CHECK(channel.pop_wait_for(item, 1ms) == channel_op_status::success);
    CHECK(channel.try_pop(item) == channel_op_status::success);
    CHECK(item == "kept");
    CHECK(channel.try_pop(item) == channel_op_status::closed);
    CHECK(channel.pop(item) == channel_op_status::closed);
    CHECK(channel.pop_wait_for(item, 1ms) == channel_op_status::closed);
    CHECK(code_of([&] { channel.value_pop(); }) == std::errc::operation_not_permitted);
    CHECK(item == "kept");
  });
}

TEST_CASE("boost::fibers::buffered_channel has iterators") {
  run_here([] {
    boost::fibers::buffered_channel<std::string> channel(8);
    for (const char* word : {"a", "b", "c"}) channel.push(word);
    channel.close();
    words log;
    boost::fibers::buffered_channel<std::string>::iterator position = boost::fibers::begin(channel);
    log.push_back(*position);
    std::for_each(++position, end(channel), [&](const std::string& word) { log.push_back(word); });
    CHECK(log == words{"a", "b", "c"});
  });
}

TEST_CASE("boost::fibers::buffered_channel keeps an item that push_wait_for() cannot push") {
  run_here([] {
    boost::fibers::buffered_channel<std::shared_ptr<const int>> channel(2);
    channel.push(nullptr);
    auto item = std::make_unique<int>(4);
    boost::fibers::fiber pops([&] {
      boost::this_fiber::sleep_for(2ms);
      channel.value_pop();
    });
    CHECK(channel.push_wait_for(std::move(item), 10s) == channel_op_status::success);
    CHECK(*channel.value_pop() == 4);
    pops.join();
  });
}

TEST_CASE("boost::fibers::unbuffered_channel hands each item over, between threads as well") {
  run_here([] {
    boost::fibers::unbuffered_channel<int> channel;
    CHECK(channel.push_wait_for(1, 1ms) == channel_op_status::timeout);
    std::thread pushes([&] {
      for (int number = 0; number < 10; ++number) channel.push(number);
      channel.close();
    });
    int sum = 0;
    for (const int number : channel) sum += number;
    CHECK(sum == 45);
    pushes.join();
  });
}

TEST_CASE("boost::fibers::future and promise pass values, references and exceptions") {
  run_here([] {
    using boost::fibers::future_status;
    boost::fibers::future<std::string> empty_future;
    CHECK(!empty_future.valid());
    CHECK_THROWS_AS(empty_future.get(), boost::fibers::future_uninitialized);
    CHECK_THROWS_AS(empty_future.wait(), boost::fibers::future_uninitialized);

    boost::fibers::promise<std::string> promise;
    auto value = promise.get_future();
    CHECK_THROWS_AS(promise.get_future(), boost::fibers::future_already_retrieved);
    CHECK(value.wait_for(1ms) == future_status::timeout);
    CHECK(value.wait_until(past) == future_status::timeout);
    boost::fibers::fiber sets([&] { promise.set_value("value"); });
    value.wait();
    CHECK(value.wait_until(past) == future_status::ready);
    CHECK(value.get_exception_ptr() == nullptr);
    CHECK(value.get() == "value");
    CHECK(!value.valid());
    CHECK_THROWS_AS(promise.set_value("more"), boost::fibers::promise_already_satisfied);
    CHECK_THROWS_AS(promise.set_exception({}), boost::fibers::promise_already_satisfied);
    sets.join();

    boost::fibers::promise<void> failing_promise;
    auto failure = failing_promise.get_future().share();
    failing_promise.set_exception(std::make_exception_ptr(oops()));
    auto copy = failure;
    const auto moved_on = std::move(copy);
    CHECK(!copy.valid());
    copy = moved_on;
    CHECK_THROWS_AS(copy.get(), oops);
    CHECK_THROWS_AS(failure.get(), oops);
    CHECK(failure.get_exception_ptr() != nullptr);

    int number = 5;
    boost::fibers::promise<int&> reference;
    auto referred = reference.get_future();
    reference.set_value(number);
    CHECK(&referred.get() == &number);

    auto dropped = boost::fibers::promise<std::unique_ptr<int>>().get_future();
    CHECK_THROWS_AS(dropped.get(), boost::fibers::broken_promise);
    boost::fibers::promise<int> source(std::move(*std::make_unique<boost::fibers::promise<int>>()));
    boost::fibers::promise<int> empty(std::move(source));
    CHECK_THROWS_AS(source.get_future(), boost::fibers::promise_uninitialized);
    CHECK_THROWS_AS(source.set_value(1), boost::fibers::promise_uninitialized);
  });
}

TEST_CASE("boost::fibers::packaged_task and async() return futures") {
  run_here([] {
    boost::fibers::packaged_task<int(std::unique_ptr<int>, int)> empty_task;
    CHECK_THROWS_AS(empty_task(nullptr, 1), boost::fibers::packaged_task_uninitialized);
    CHECK_THROWS_AS(empty_task.get_future(), boost::fibers::packaged_task_uninitialized);
    CHECK_THROWS_AS(empty_task.reset(), boost::fibers::packaged_task_uninitialized);

    boost::fibers::packaged_task<int(std::unique_ptr<int>, int)> adds(
        [base = std::make_unique<int>(1)](std::unique_ptr<int> a, int b) {
          return *base + *a + b;
        });
    auto sum = adds.get_future();
    adds(std::make_unique<int>(2), 3);
    CHECK(sum.get() == 6);
    CHECK_THROWS_AS(adds(std::make_unique<int>(2), 3), boost::fibers::promise_already_satisfied);
    adds.reset();
    sum = adds.get_future();
    adds(std::make_unique<int>(3), 3);
    CHECK(sum.get() == 7);

    CHECK(boost::fibers::async([](int a, int b) { return a * b; }, 6, 7).get() == 42);
    CHECK_THROWS_AS(boost::fibers::async([] { throw oops(); }).get(), oops);
    words log;
    const auto future = boost::fibers::async(
        boost::fibers::launch::dispatch, [&](const char* word) { log.emplace_back(word); }, "ran");
    CHECK(log == words{"ran"});
    future.wait();
  });
}

TEST_CASE("boost::fibers::future throws if a result cannot be moved") {
  struct stays {
    stays() = default;
    [[noreturn]] stays(stays&&) { throw oops(); }
  };
  run_here([] {
    auto result = boost::fibers::async([] { return stays(); });
    CHECK_THROWS_AS(result.get(), oops);
  });
}

TEST_CASE("boost::fibers::future::get() that is interrupted takes no value") {
  run_here([] {
    boost::fibers::promise<int> promise;
    auto value = promise.get_future();
    const auto waits = motet::spin([&] {
      CHECK(value.get_exception_ptr() == nullptr);
      CHECK_THROWS_AS(value.get(), oops);
      CHECK(value.get() == 1);
    });
    motet::snooze();
    promise.set_value(1);
    waits.raise(oops());
    waits.await();
  });
}

TEST_CASE("boost::fibers::packaged_task that is interrupted passes that to its future") {
  run_here([] {
    boost::fibers::packaged_task<void()> sleeps([] { motet::sleep(); });
    const auto future = sleeps.get_future();
    CHECK(!motet::move_on_after(1ms, [&] { sleeps(); }));
    CHECK(future.get_exception_ptr() != nullptr);
  });
}

TEST_CASE("boost::fibers::fiber_specific_ptr has a pointer for each fiber") {
  words log;
  {
    boost::fibers::fiber_specific_ptr<std::string> pointer([](std::string* old) { delete old; });
    boost::fibers::fiber_specific_ptr<testing::note> noted;
    run_here([&] {
      CHECK(pointer.get() == nullptr);
      pointer.reset(new std::string("main's"));
      boost::fibers::fiber([&] {
        CHECK(pointer.get() == nullptr);
        pointer.reset(new std::string("first"));
        pointer.reset(new std::string("second"));
        CHECK((*pointer == "second" && pointer->size() == 6));
        noted.reset(new testing::note(log, "fiber's end"));
        boost::this_fiber::yield();
        const std::unique_ptr<std::string> text(pointer.release());
        CHECK((*text == "second" && pointer.get() == nullptr));
        CHECK(log.empty());
      }).join();
      CHECK(log == words{"fiber's end"});
      {
        boost::fibers::fiber_specific_ptr<testing::note> brief;
        brief.reset(new testing::note(log, "brief"));
      }
      CHECK(log == words{"fiber's end", "brief"});
      CHECK(*pointer == "main's");
    });
  }
  CHECK(log == words{"fiber's end", "brief"});
}
