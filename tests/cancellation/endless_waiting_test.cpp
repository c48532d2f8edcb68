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
       again([&] { const std::lock_guard in(free); });
     }},
    {"mutex::lock, local",
     [](endless_loop& again) {
       local::mutex free;
       again([&] { const std::lock_guard in(free); });
     }},
    {"mutex::lock, two at once",
     [](endless_loop& again) {
       motet::mutex first;
       motet::mutex second;
       again([&] { const std::scoped_lock in(first, second); });
     }},
    {"recursive_mutex::lock",
     [](endless_loop& again) {
       recursive_mutex held;
       const std::lock_guard outer(held);
       again([&] { const std::lock_guard in(held); });
     }},
    {"shared_mutex::lock",
     [](endless_loop& again) {
       motet::shared_mutex free;
       again([&] { const std::lock_guard in(free); });
     }},
    {"shared_mutex::lock_shared",
     [](endless_loop& again) {
       motet::shared_mutex free;
       again([&] { const std::shared_lock in(free); });
     }},
    {"timeslice_lock::lock",
     [](endless_loop& again) {
       timeslice_lock free;
       again([&] { const std::lock_guard in(free); });
     }},
    {"timeslice_lock::yield_if_due",
     [](endless_loop& again) {
       timeslice_lock turns(1ns);
       group others;
       others.spin([&] {
         for (;;) const std::lock_guard in(turns);
       });
       const std::lock_guard in(turns);
       snooze();
       again([&] { turns.yield_if_due(); });
     }},
    {"condition_variable::wait",
     [](endless_loop& again) {
       motet::mutex free;
       condition_variable changed;
       group others;
       others.spin([&] {
         for (;; snooze()) changed.notify_all();
       });
       std::unique_lock in(free);
       again([&] { changed.wait(in); });
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
       again([&] { const permit_guard in(free); });
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
       notification told;
       group others;
       others.spin([&] {
         for (;; snooze()) told.notify_all();
       });
       again([&] { told.wait(); });
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
       promise<int> given;
       given.set_value(1);
       again([known = given.get_future()] { known.wait(); });
     }},
    {"future::get",
     [](endless_loop& again) {
       promise<int> given;
       given.set_value(1);
       again([known = given.get_future()] { known.get(); });
     }},
    {"future::get, moved",
     [](endless_loop& again) {
       again([] {
         promise<int> given;
         given.set_value(1);
         given.get_future().get();
       });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
