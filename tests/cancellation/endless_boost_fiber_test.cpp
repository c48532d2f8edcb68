// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: the names of Boost.Fiber.
#include <chrono>
#include <motet/compat/boost_fiber.hpp>
#include <mutex>
#include <utility>

#include "cancellation/endless_loop.hpp"

namespace {

using namespace testing;
namespace fibers = motet::compat::boost_fiber;

using channel_of_ints = fibers::buffered_channel<int>;

/// A future whose value is there.
fibers::future<int> known() {
  fibers::promise<int> answer;
  answer.set_value(1);
  return answer.get_future();
}

/// Notifies without end.
struct changing {
  changing() {
    helpers.spin([this] {
      for (;; snooze()) condition.notify_all();
    });
  }
  fibers::mutex free;
  fibers::condition_variable_any condition;
  group helpers;
};

const switchpoint_table table = {
    {"boost_fiber::channel::push",
     [](endless_loop& again) {
       channel_of_ints items(2);
       again([&, item = 0]() mutable {
         items.push(1);
         items.try_pop(item);
       });
     }},
    {"boost_fiber::channel::push_wait_for",
     [](endless_loop& again) {
       channel_of_ints items(2);
       again([&, item = 0]() mutable {
         items.push_wait_for(1, 1h);
         items.try_pop(item);
       });
     }},
    {"boost_fiber::channel::pop",
     [](endless_loop& again) {
       channel_of_ints items(2);
       again([&, item = 0]() mutable {
         items.try_push(1);
         items.pop(item);
       });
     }},
    {"boost_fiber::channel::pop, closed",
     [](endless_loop& again) {
       channel_of_ints closed_channel(2);
       closed_channel.close();
       again([&, item = 0]() mutable { closed_channel.pop(item); });
     }},
    {"boost_fiber::channel::value_pop",
     [](endless_loop& again) {
       channel_of_ints items(2);
       again([&] {
         items.try_push(1);
         items.value_pop();
       });
     }},
    {"boost_fiber::channel::pop_wait_for",
     [](endless_loop& again) {
       channel_of_ints items(2);
       again([&, item = 0]() mutable {
         items.try_push(1);
         items.pop_wait_for(item, 1h);
       });
     }},
    {"boost_fiber::channel::begin",
     [](endless_loop& again) {
       channel_of_ints closed_channel(2);
       closed_channel.close();
       again([&] { closed_channel.begin(); });
     }},
    {"boost_fiber::channel::iterator::iterator",
     [](endless_loop& again) {
       channel_of_ints closed_channel(2);
       closed_channel.close();
       again([&] { channel_of_ints::iterator item(closed_channel); });
     }},
    {"boost_fiber::channel::iterator::operator++",
     [](endless_loop& again) {
       channel_of_ints items(2);
       items.try_push(1);
       auto item = items.begin();
       again([&] {
         items.try_push(1);
         ++item;
       });
     }},
    {"boost_fiber::begin",
     [](endless_loop& again) {
       channel_of_ints closed_channel(2);
       closed_channel.close();
       again([&] { begin(closed_channel); });
     }},
    {"boost_fiber::fiber::fiber",
     [](endless_loop& again) {
       again([] { fibers::fiber(fibers::launch::dispatch, [] {}).detach(); });
     }},
    {"boost_fiber::async",
     [](endless_loop& again) { again([] { fibers::async(fibers::launch::dispatch, [] {}); }); }},
    {"boost_fiber::future::wait",
     [](endless_loop& again) { again([answer = known()] { answer.wait(); }); }},
    {"boost_fiber::future::wait_for",
     [](endless_loop& again) { again([answer = known()] { answer.wait_for(1h); }); }},
    {"boost_fiber::future::wait_for, no time",
     [](endless_loop& again) {
       fibers::promise<int> never;
       again([later = never.get_future()] { later.wait_for(0s); });
     }},
    {"boost_fiber::future::get_exception_ptr",
     [](endless_loop& again) {
       again([answer = known()]() mutable { answer.get_exception_ptr(); });
     }},
    {"boost_fiber::future::get", [](endless_loop& again) { again([] { known().get(); }); }},
    {"boost_fiber::shared_future::get",
     [](endless_loop& again) { again([answer = known().share()] { answer.get(); }); }},
    {"boost_fiber::timed_mutex::lock",
     [](endless_loop& again) {
       fibers::timed_mutex free;
       again([&] { const std::lock_guard guard(free); });
     }},
    {"boost_fiber::timed_mutex::try_lock_for",
     [](endless_loop& again) {
       fibers::timed_mutex free;
       again([&] {
         free.try_lock_for(1h);
         free.unlock();
       });
     }},
    {"boost_fiber::condition_variable_any::wait",
     [](endless_loop& again) {
       changing state;
       std::unique_lock guard(state.free);
       again([&] { state.condition.wait(guard); });
     }},
    {"boost_fiber::condition_variable_any::wait_for",
     [](endless_loop& again) {
       changing state;
       std::unique_lock guard(state.free);
       again([&] { state.condition.wait_for(guard, 1h); });
     }},
    {"boost_fiber::condition_variable_any::wait_for, no time",
     [](endless_loop& again) {
       fibers::mutex free;
       fibers::condition_variable_any never;
       std::unique_lock guard(free);
       again([&] { never.wait_for(guard, 0s); });
     }},
    {"boost_fiber::barrier::wait",
     [](endless_loop& again) {
       fibers::barrier alone(1);
       again([&] { alone.wait(); });
     }},
    {"boost_fiber::this_fiber::yield",
     [](endless_loop& again) { again([] { fibers::this_fiber::yield(); }); }},
    {"boost_fiber::this_fiber::sleep_for",
     [](endless_loop& again) { again([] { fibers::this_fiber::sleep_for(0s); }); }},
    {"boost_fiber::this_fiber::sleep_until",
     [](endless_loop& again) {
       again([past = std::chrono::steady_clock::now()] { fibers::this_fiber::sleep_until(past); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
