// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: locks, counts and futures. Both forms of a primitive are
// one template, and share a row.
#include <mutex>
#include <shared_mutex>

#include "cancellation/endless_loop.hpp"

namespace {

using namespace testing;

const switchpoint_table table = {
    {"mutex::lock",
     [](endless_loop& again) {
       motet::mutex free;
       again([&] { const std::lock_guard guard(free); });
     }},
    {"mutex::lock, local",
     [](endless_loop& again) {
       local::mutex free;
       again([&] { const std::lock_guard guard(free); });
     }},
    {"mutex::lock, two at once",
     [](endless_loop& again) {
       motet::mutex first;
       motet::mutex second;
       again([&] { const std::scoped_lock guard(first, second); });
     }},
    {"recursive_mutex::lock",
     [](endless_loop& again) {
       recursive_mutex locked;
       const std::lock_guard outer(locked);
       again([&] { const std::lock_guard guard(locked); });
     }},
    {"shared_mutex::lock",
     [](endless_loop& again) {
       motet::shared_mutex free;
       again([&] { const std::lock_guard guard(free); });
     }},
    {"shared_mutex::lock_shared",
     [](endless_loop& again) {
       motet::shared_mutex free;
       again([&] { const std::shared_lock guard(free); });
     }},
    {"timeslice_lock::lock",
     [](endless_loop& again) {
       timeslice_lock free;
       again([&] { const std::lock_guard guard(free); });
     }},
    {"timeslice_lock::yield_if_due",
     [](endless_loop& again) {
       timeslice_lock turns(1ns);
       group helpers;
       helpers.spin([&] {
         for (;;) const std::lock_guard guard(turns);
       });
       const std::lock_guard guard(turns);
       snooze();
       again([&] { turns.yield_if_due(); });
     }},
    {"condition_variable::wait",
     [](endless_loop& again) {
       motet::mutex free;
       condition_variable condition;
       group helpers;
       helpers.spin([&] {
         for (;; snooze()) condition.notify_all();
       });
       std::unique_lock guard(free);
       again([&] { condition.wait(guard); });
     }},
    {"once::call",
     [](endless_loop& again) {
       again([] {
         once fresh;
         fresh.call([] {});
       });
     }},
    {"semaphore::acquire",
     [](endless_loop& again) {
       semaphore free(1);
       again([&] {
         free.acquire();
         free.release();
       });
     }},
    {"permit_guard::permit_guard",
     [](endless_loop& again) {
       semaphore free(1);
       again([&] { const permit_guard guard(free); });
     }},
    {"event::wait",
     [](endless_loop& again) {
       event happened;
       happened.set();
       again([&] { happened.wait(); });
     }},
    {"event::wait, local",
     [](endless_loop& again) {
       local::event happened;
       happened.set();
       again([&] { happened.wait(); });
     }},
    {"latch::wait",
     [](endless_loop& again) {
       latch open(0);
       again([&] { open.wait(); });
     }},
    {"barrier::arrive_and_wait",
     [](endless_loop& again) {
       barrier alone(1);
       again([&] { alone.arrive_and_wait(); });
     }},
    {"notification::wait",
     [](endless_loop& again) {
       notification news;
       group helpers;
       helpers.spin([&] {
         for (;; snooze()) news.notify_all();
       });
       again([&] { news.wait(); });
     }},
    {"rate_limiter::acquire",
     [](endless_loop& again) {
       rate_limiter generous(1'000'000'000, 1s, 1'000'000'000);
       again([&] { generous.acquire(); });
     }},
    {"resource_pool::acquire",
     [](endless_loop& again) {
       resource_pool<int> idle(1, [] { return 1; });
       again([&] { static_cast<void>(idle.acquire()); });
     }},
    {"future::wait",
     [](endless_loop& again) {
       promise<int> answer;
       answer.set_value(1);
       again([result = answer.get_future()] { result.wait(); });
     }},
    {"future::get",
     [](endless_loop& again) {
       promise<int> answer;
       answer.set_value(1);
       again([result = answer.get_future()] { result.get(); });
     }},
    {"future::get, moved",
     [](endless_loop& again) {
       again([] {
         promise<int> answer;
         answer.set_value(1);
         answer.get_future().get();
       });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
