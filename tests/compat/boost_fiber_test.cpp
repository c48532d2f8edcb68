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

TEST_CASE("a fiber of Boost's is called with its arguments, and joined") {
  run_here([] {
    words said;
    std::string mine = "borrowed";
    boost::fibers::fiber none;
    CHECK(!none.joinable());
    CHECK(none.get_id() == boost::fibers::fiber::id());
    boost::fibers::fiber one(
        [&](std::string moved, std::string& borrowed, std::unique_ptr<int> owned) {
          said = {moved, borrowed, std::to_string(*owned)};
          boost::this_fiber::yield();
          borrowed = "changed";
        },
        "moved", std::ref(mine), std::make_unique<int>(3));
    CHECK(said.empty());
    const auto id = one.get_id();
    CHECK((id != boost::this_fiber::get_id() && id));
    boost::fibers::fiber other(std::move(one));
    CHECK((!one.joinable() && other.joinable() && other.get_id() == id));
    swap(one, other);
    one.join();
    CHECK(said == words{"moved", "borrowed", "3"});
    CHECK(mine == "changed");
    CHECK(code_of([&] { one.join(); }) == std::errc::invalid_argument);
    CHECK(code_of([&] { one.detach(); }) == std::errc::invalid_argument);
    std::ostringstream shown;
    shown << one.get_id();
    CHECK(shown.str() == "{not-valid}");
  });
}

TEST_CASE("a fiber of Boost's that is dispatched begins before its constructor returns") {
  run_here([] {
    words said;
    const auto say = [&](const char* word) { said.emplace_back(word); };
    boost::fibers::fiber later(boost::fibers::launch::post, say, "posted");
    CHECK(said.empty());
    boost::fibers::fiber now(boost::fibers::launch::dispatch, say, "dispatched");
    CHECK(said == words{"posted", "dispatched"});
    later.join();
    now.join();
  });
}

TEST_CASE("a fiber of Boost's that is detached outlives the fiber that started it") {
  words said;
  run_here([&] {
    boost::fibers::fiber([&] {
      boost::fibers::fiber([&] {
        boost::this_fiber::sleep_for(5ms);
        said.emplace_back("inner");
      }).detach();
      said.emplace_back("outer");
    }).join();
    CHECK(said == words{"outer"});
  });
  CHECK(said == words{"outer", "inner"});
}

TEST_CASE("a fiber of Boost's that starts fibers when main has returned has them run") {
  words said;
  run_here([&] {
    boost::fibers::fiber([&] {
      boost::this_fiber::sleep_for(5ms);
      boost::fibers::fiber([&] { said.emplace_back("joined"); }).join();
      boost::fibers::fiber([&] {
        boost::this_fiber::sleep_for(5ms);
        said.emplace_back("detached");
      }).detach();
      said.emplace_back("outer");
    }).detach();
  });
  CHECK(said == words{"joined", "outer", "detached"});
}

TEST_CASE("a fiber of Boost's takes a stack that was used before") {
  run_here([] {
    const auto place_of_a_stack = [] {
      const void* found = nullptr;
      boost::fibers::fiber([&found] { found = __builtin_frame_address(0); }).join();
      return found;
    };
    const void* first = place_of_a_stack();
    CHECK((place_of_a_stack() == first || testing::disabled("stack_reuse")));
    boost::fibers::fiber(std::allocator_arg, boost::fibers::fixedsize_stack(1), [] {}).join();
  });
}

TEST_CASE("what interrupts the start or the wait for a fiber of Boost's does so afterwards") {
  run_here([] {
    bool ended = false;
    const auto both = motet::spin([&] {
      boost::fibers::fiber one(boost::fibers::launch::dispatch, [&] {
        boost::this_fiber::sleep_for(5ms);
        ended = true;
      });
      one.join();
      CHECK(ended);
      CHECK_THROWS_AS(motet::snooze(), oops);
    });
    motet::spin([&] { both.raise(oops()); });
    both.await();
  });
}

TEST_CASE("join tells what a child of motet's has thrown") {
  run_here([] {
    boost::fibers::fiber one([] {
      motet::spin([] { throw oops(); });
      boost::this_fiber::sleep_for(1ms);
    });
    CHECK_THROWS_AS(one.join(), oops);
    CHECK(!one.joinable());
  });
}

TEST_CASE("nothing of motet's interrupts a fiber of Boost's") {
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

TEST_CASE("a fiber of Boost's has the stack that its allocator says") {
  run_here([] {
    const auto fill = [](std::size_t size) {
      const auto room = std::make_unique<char[]>(size);
      volatile char* place = static_cast<char*>(__builtin_alloca(size));
      for (std::size_t at = 0; at < size; at += 512) place[at] = 1;
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

TEST_CASE("a fiber of Boost's cannot join itself, and another thread can") {
  run_here([] {
    boost::fibers::fiber one;
    std::error_code told;
    one = boost::fibers::fiber([&] { told = code_of([&] { one.join(); }); });
    boost::this_fiber::yield();
    CHECK(told == std::errc::resource_deadlock_would_occur);
    testing::idle_thread elsewhere;
    elsewhere.thread.call([&] { one.join(); });
    CHECK(!one.joinable());
  });
}

TEMPLATE_TEST_CASE("mutexes of Boost's have time limits, and tell of misuse", "",
                   boost::fibers::mutex, boost::fibers::timed_mutex, boost::fibers::recursive_mutex,
                   boost::fibers::recursive_timed_mutex) {
  run_here([] {
    TestType lock;
    CHECK(code_of([&] { lock.unlock(); }) == std::errc::operation_not_permitted);
    std::unique_lock<TestType> held(lock);
    constexpr bool again = std::is_same_v<TestType, boost::fibers::recursive_mutex> ||
                           std::is_same_v<TestType, boost::fibers::recursive_timed_mutex>;
    CHECK(code_of([&] {
            lock.lock();
            lock.unlock();
          }) ==
          (again ? std::error_code() : make_error_code(std::errc::resource_deadlock_would_occur)));
    boost::fibers::fiber([&] {
      CHECK(!lock.try_lock());
      const auto before = motet::clock::now();
      CHECK(!lock.try_lock_for(2ms));
      CHECK(motet::clock::now() - before >= 2ms);
      CHECK(!lock.try_lock_until(past));
      CHECK(lock.try_lock_for(10s));
      lock.unlock();
      CHECK(lock.try_lock_until(past));
      lock.unlock();
    }).detach();
    boost::this_fiber::sleep_for(20ms);
    held.unlock();
    boost::this_fiber::yield();
    held.lock();
  });
}

TEST_CASE("condition variables of Boost's wait for a notification or for a time") {
  run_here([] {
    boost::fibers::mutex lock;
    boost::fibers::condition_variable changed;
    bool ready = false;
    boost::fibers::fiber waiting([&] {
      std::unique_lock<boost::fibers::mutex> held(lock);
      CHECK(changed.wait_for(held, 1ms) == boost::fibers::cv_status::timeout);
      CHECK(held.owns_lock());
      CHECK(!changed.wait_for(held, 1ms, [&] { return ready; }));
      CHECK(!changed.wait_until(held, past, [&] { return ready; }));
      changed.wait(held, [&] { return ready; });
      CHECK(changed.wait_until(held, past, [&] { return ready; }));
      CHECK(changed.wait_for(held, 10s) == boost::fibers::cv_status::no_timeout);
    });
    boost::this_fiber::sleep_for(10ms);
    {
      const std::lock_guard held(lock);
      ready = true;
    }
    changed.notify_one();
    boost::this_fiber::sleep_for(1ms);
    changed.notify_all();
    waiting.join();

    std::mutex of_threads;
    boost::fibers::condition_variable_any any;
    std::unique_lock held(of_threads);
    CHECK(any.wait_for(held, 1ms) == boost::fibers::cv_status::timeout);
  });
}

TEST_CASE("a barrier of Boost's lets all of its parties go on at once") {
  run_here([] {
    CHECK(code_of([] { boost::fibers::barrier nobody(0); }) == std::errc::invalid_argument);
    boost::fibers::barrier three(3);
    int last = 0;
    int passed = 0;
    const auto come = [&] {
      if (three.wait()) ++last;
      ++passed;
    };
    boost::fibers::fiber one(come);
    boost::fibers::fiber other(come);
    boost::this_fiber::sleep_for(1ms);
    CHECK(passed == 0);
    come();
    one.join();
    other.join();
    CHECK((last == 1 && passed == 3));
  });
}

TEST_CASE("buffered channels of Boost's") {
  run_here([] {
    using strings = boost::fibers::buffered_channel<std::string>;
    CHECK(code_of([] { strings none(0); }) == std::errc::invalid_argument);
    CHECK(code_of([] { strings three(3); }) == std::errc::invalid_argument);
    strings channel(4);
    std::string item = "kept";
    CHECK(channel.try_pop(item) == channel_op_status::empty);
    CHECK(channel.pop_wait_for(item, 1ms) == channel_op_status::timeout);
    CHECK(channel.pop_wait_until(item, past) == channel_op_status::timeout);
    const std::string copied = "copied";
    CHECK(channel.push(copied) == channel_op_status::success);
    CHECK(channel.push("moved") == channel_op_status::success);
    CHECK(channel.try_push(copied) == channel_op_status::success);
    CHECK(channel.try_push(copied) == channel_op_status::full);
    CHECK(channel.push_wait_for(std::move(item), 1ms) == channel_op_status::timeout);
    CHECK(item == "kept");
    CHECK(channel.push_wait_until(item, past) == channel_op_status::timeout);
    CHECK(channel.value_pop() == "copied");
    CHECK(channel.push_wait_until(item, past) == channel_op_status::success);
    CHECK(channel.pop(item) == channel_op_status::success);
    CHECK(item == "moved");
    channel.close();
    CHECK(channel.is_closed());
    CHECK(channel.push(copied) == channel_op_status::closed);
    CHECK(channel.try_push(copied) == channel_op_status::closed);
    CHECK(channel.push_wait_for(copied, 1ms) == channel_op_status::closed);
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

TEST_CASE("channels of Boost's have iterators") {
  run_here([] {
    boost::fibers::buffered_channel<std::string> channel(8);
    for (const char* each : {"a", "b", "c"}) channel.push(each);
    channel.close();
    words said;
    boost::fibers::buffered_channel<std::string>::iterator at = boost::fibers::begin(channel);
    said.push_back(*at);
    std::for_each(++at, end(channel), [&](const std::string& each) { said.push_back(each); });
    CHECK(said == words{"a", "b", "c"});
  });
}

TEST_CASE("a push with a time limit keeps what it could not push, whatever it is made of") {
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

TEST_CASE("unbuffered channels of Boost's hand each item over, between threads as well") {
  run_here([] {
    boost::fibers::unbuffered_channel<int> channel;
    CHECK(channel.push_wait_for(1, 1ms) == channel_op_status::timeout);
    std::thread pushes([&] {
      for (int each = 0; each < 10; ++each) channel.push(each);
      channel.close();
    });
    int sum = 0;
    for (const int each : channel) sum += each;
    CHECK(sum == 45);
    pushes.join();
  });
}

TEST_CASE("futures and promises of Boost's") {
  run_here([] {
    using boost::fibers::future_status;
    boost::fibers::future<std::string> none;
    CHECK(!none.valid());
    CHECK_THROWS_AS(none.get(), boost::fibers::future_uninitialized);
    CHECK_THROWS_AS(none.wait(), boost::fibers::future_uninitialized);

    boost::fibers::promise<std::string> given;
    auto value = given.get_future();
    CHECK_THROWS_AS(given.get_future(), boost::fibers::future_already_retrieved);
    CHECK(value.wait_for(1ms) == future_status::timeout);
    CHECK(value.wait_until(past) == future_status::timeout);
    boost::fibers::fiber sets([&] { given.set_value("value"); });
    value.wait();
    CHECK(value.wait_until(past) == future_status::ready);
    CHECK(value.get_exception_ptr() == nullptr);
    CHECK(value.get() == "value");
    CHECK(!value.valid());
    CHECK_THROWS_AS(given.set_value("more"), boost::fibers::promise_already_satisfied);
    CHECK_THROWS_AS(given.set_exception({}), boost::fibers::promise_already_satisfied);
    sets.join();

    boost::fibers::promise<void> failed;
    auto failure = failed.get_future().share();
    failed.set_exception(std::make_exception_ptr(oops()));
    auto copy = failure;
    const auto moved_on = std::move(copy);
    CHECK(!copy.valid());
    copy = moved_on;
    CHECK_THROWS_AS(copy.get(), oops);
    CHECK_THROWS_AS(failure.get(), oops);
    CHECK(failure.get_exception_ptr() != nullptr);

    int here = 5;
    boost::fibers::promise<int&> reference;
    auto referred = reference.get_future();
    reference.set_value(here);
    CHECK(&referred.get() == &here);

    auto dropped = boost::fibers::promise<std::unique_ptr<int>>().get_future();
    CHECK_THROWS_AS(dropped.get(), boost::fibers::broken_promise);
    boost::fibers::promise<int> moved(std::move(*std::make_unique<boost::fibers::promise<int>>()));
    boost::fibers::promise<int> empty(std::move(moved));
    CHECK_THROWS_AS(moved.get_future(), boost::fibers::promise_uninitialized);
    CHECK_THROWS_AS(moved.set_value(1), boost::fibers::promise_uninitialized);
  });
}

TEST_CASE("tasks of Boost's, and async") {
  run_here([] {
    boost::fibers::packaged_task<int(std::unique_ptr<int>, int)> none;
    CHECK_THROWS_AS(none(nullptr, 1), boost::fibers::packaged_task_uninitialized);
    CHECK_THROWS_AS(none.get_future(), boost::fibers::packaged_task_uninitialized);
    CHECK_THROWS_AS(none.reset(), boost::fibers::packaged_task_uninitialized);

    boost::fibers::packaged_task<int(std::unique_ptr<int>, int)> adds(
        [mine = std::make_unique<int>(1)](std::unique_ptr<int> a, int b) {
          return *mine + *a + b;
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
    words said;
    const auto now = boost::fibers::async(
        boost::fibers::launch::dispatch, [&](const char* word) { said.emplace_back(word); }, "ran");
    CHECK(said == words{"ran"});
    now.wait();
  });
}

TEST_CASE("a result that cannot be moved is an exception of the future") {
  struct stays {
    stays() = default;
    [[noreturn]] stays(stays&&) { throw oops(); }
  };
  run_here([] {
    auto result = boost::fibers::async([] { return stays(); });
    CHECK_THROWS_AS(result.get(), oops);
  });
}

TEST_CASE("an interruption is no outcome of a future, and takes no value") {
  run_here([] {
    boost::fibers::promise<int> given;
    auto value = given.get_future();
    const auto waits = motet::spin([&] {
      CHECK(value.get_exception_ptr() == nullptr);
      CHECK_THROWS_AS(value.get(), oops);
      CHECK(value.get() == 1);
    });
    motet::snooze();
    given.set_value(1);
    waits.raise(oops());
    waits.await();
  });
}

TEST_CASE("a task that motet interrupts tells its future, and is interrupted") {
  run_here([] {
    boost::fibers::packaged_task<void()> sleeps([] { motet::sleep(); });
    const auto told = sleeps.get_future();
    CHECK(!motet::move_on_after(1ms, [&] { sleeps(); }));
    CHECK(told.get_exception_ptr() != nullptr);
  });
}

TEST_CASE("each fiber has its own pointer in a fiber_specific_ptr") {
  words said;
  {
    boost::fibers::fiber_specific_ptr<std::string> own([](std::string* old) { delete old; });
    boost::fibers::fiber_specific_ptr<testing::note> noted;
    run_here([&] {
      CHECK(own.get() == nullptr);
      own.reset(new std::string("main's"));
      boost::fibers::fiber([&] {
        CHECK(own.get() == nullptr);
        own.reset(new std::string("first"));
        own.reset(new std::string("second"));
        CHECK((*own == "second" && own->size() == 6));
        noted.reset(new testing::note(said, "fiber's end"));
        boost::this_fiber::yield();
        const std::unique_ptr<std::string> mine(own.release());
        CHECK((*mine == "second" && own.get() == nullptr));
        CHECK(said.empty());
      }).join();
      CHECK(said == words{"fiber's end"});
      {
        boost::fibers::fiber_specific_ptr<testing::note> brief;
        brief.reset(new testing::note(said, "brief"));
      }
      CHECK(said == words{"fiber's end", "brief"});
      CHECK(*own == "main's");
    });
  }
  CHECK(said == words{"fiber's end", "brief"});
}
