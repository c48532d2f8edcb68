// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait, or not for long: threads, pools, journeys and programs.
#include <signal.h>

#include <utility>

#include "cancellation/endless_io.hpp"
#include "cancellation/endless_loop.hpp"
#include "places.hpp"

namespace {

using namespace testing;

/// A pool that has room for more jobs than a loop that is to end can give.
struct wide_pool {
  thread_pool itself{1, "wide", 1'000'000};
};

process_options quick() {
  return {.program = "/bin/true"};
}

const switchpoint_table table = {
    {"offload", [](endless_loop& again) { again([] { offload([] {}); }); }},
    {"offload_owned", [](endless_loop& again) { again([] { offload_owned([] {}); }); }},
    {"thread::await",
     [](endless_loop& again) {
       const motet::thread over(quiet(), [] {});
       over.await();
       again([&] { over.await(); });
     }},
    {"thread::spin",
     [](endless_loop& again) {
       idle_thread other;
       again([&] { other.itself.spin([] {}); });
     }},
    {"thread::call",
     [](endless_loop& again) {
       idle_thread other;
       again([&] { other.itself.call([] {}); });
     }},
    {"thread::call, on the thread itself",
     [](endless_loop& again) {
       motet::thread other(quiet(), [] { sleep(); });
       other.call([&] { again([&] { other.call([] {}); }); });
     }},
    {"thread_pool::submit",
     [](endless_loop& again) {
       wide_pool pool;
       again([&] { pool.itself.submit([] {}); });
     }},
    {"thread_pool::post",
     [](endless_loop& again) {
       wide_pool pool;
       again([&] { pool.itself.post([] {}); });
     }},
    {"thread_pool::drain",
     [](endless_loop& again) {
       wide_pool pool;
       again([&] { pool.itself.drain(); });
     }},
    {"thread_pool::stop",
     [](endless_loop& again) {
       wide_pool pool;
       pool.itself.stop();
       again([&] { pool.itself.stop(); });
     }},
    {"strand::post",
     [](endless_loop& again) {
       wide_pool pool;
       strand one_of(pool.itself);
       again([&] { one_of.post([] {}); });
     }},
    {"executor::post",
     [](endless_loop& again) {
       wide_pool pool;
       const executor to(pool.itself);
       again([&] { to.post([] {}); });
     }},
    {"inline_executor::post",
     [](endless_loop& again) {
       inline_executor at_once;
       again([&] { at_once.post([] { checkpoint(); }); });
     }},
    {"teleport", [](endless_loop& again) { again([home = here()] { teleport(home); }); }},
    {"teleport, and back",
     [](endless_loop& again) {
       idle_thread other;
       again([&, home = here()] {
         teleport(other.itself);
         teleport(home);
       });
     }},
    {"portal::portal",
     [](endless_loop& again) { again([home = here()] { const portal same(home); }); }},
    {"executor_bound::call",
     [](endless_loop& again) {
       executor_bound<int> kept(here(), 1);
       again([&] { kept.call([](int& number) { ++number; }); });
     }},
    {"process::start", [](endless_loop& again) { again([] { process::start(quick()); }); }},
    {"process::wait",
     [](endless_loop& again) {
       process over = process::start(quick());
       over.wait();
       again([&] { over.wait(); });
     }},
    {"process::terminate",
     [](endless_loop& again) {
       process over = process::start(quick());
       over.wait();
       again([&] { over.terminate(); });
     }},
    {"run_command", [](endless_loop& again) { again([] { run_command(quick()); }); }},
    {"signal_set::next",
     [](endless_loop& again) {
       signal_set signals{SIGUSR1};
       again([&] {
         ::raise(SIGUSR1);
         signals.next();
       });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
