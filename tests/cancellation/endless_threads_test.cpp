// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait, or not for long: threads, pools, journeys and programs.
#include <signal.h>

#include <array>
#include <utility>

#include "cancellation/endless_io.hpp"
#include "cancellation/endless_loop.hpp"
#include "places.hpp"

namespace {

using namespace testing;

/// A pool that has room for more jobs than a loop that is to end can give.
struct wide_pool {
  thread_pool workers{1, "wide", 1'000'000};
};

process_options quick() {
  return {.program = "/bin/true"};
}

const switchpoint_table table = {
    {"offload", [](endless_loop& again) { again([] { offload([] {}); }); }},
    {"offload_owned", [](endless_loop& again) { again([] { offload_owned([] {}); }); }},
    {"thread::await",
     [](endless_loop& again) {
       const motet::thread dead(quiet(), [] {});
       dead.await();
       again([&] { dead.await(); });
     }},
    {"thread::spin",
     [](endless_loop& again) {
       idle_thread worker;
       again([&] { worker.thread.spin([] {}); });
     }},
    {"thread::call",
     [](endless_loop& again) {
       idle_thread worker;
       again([&] { worker.thread.call([] {}); });
     }},
    {"thread::call, on the thread itself",
     [](endless_loop& again) {
       motet::thread worker(quiet(), [] { sleep(); });
       worker.call([&] { again([&] { worker.call([] {}); }); });
     }},
    {"thread_pool::submit",
     [](endless_loop& again) {
       wide_pool pool;
       again([&] { pool.workers.submit([] {}); });
     }},
    {"thread_pool::post",
     [](endless_loop& again) {
       wide_pool pool;
       again([&] { pool.workers.post([] {}); });
     }},
    {"parallel_for",
     [](endless_loop& again) {
       wide_pool pool;
       std::array<int, 4> elements{};
       again([&] { parallel_for(pool.workers, elements, [](int) {}); });
     }},
    {"parallel_for, nothing",
     [](endless_loop& again) {
       wide_pool pool;
       std::array<int, 0> elements{};
       again([&] { parallel_for(pool.workers, elements, [](int) {}); });
     }},
    {"thread_pool::drain",
     [](endless_loop& again) {
       wide_pool pool;
       again([&] { pool.workers.drain(); });
     }},
    {"thread_pool::stop",
     [](endless_loop& again) {
       wide_pool pool;
       pool.workers.stop();
       again([&] { pool.workers.stop(); });
     }},
    {"strand::post",
     [](endless_loop& again) {
       wide_pool pool;
       strand one_of(pool.workers);
       again([&] { one_of.post([] {}); });
     }},
    {"executor::post",
     [](endless_loop& again) {
       wide_pool pool;
       const executor target(pool.workers);
       again([&] { target.post([] {}); });
     }},
    {"inline_executor::post",
     [](endless_loop& again) {
       inline_executor at_once;
       again([&] { at_once.post([] { checkpoint(); }); });
     }},
    {"teleport", [](endless_loop& again) { again([home = here()] { teleport(home); }); }},
    {"teleport, and back",
     [](endless_loop& again) {
       idle_thread worker;
       again([&, home = here()] {
         teleport(worker.thread);
         teleport(home);
       });
     }},
    {"portal::portal",
     [](endless_loop& again) { again([home = here()] { const portal visit(home); }); }},
    {"executor_bound::call",
     [](endless_loop& again) {
       executor_bound<int> number_box(here(), 1);
       again([&] { number_box.call([](int& number) { ++number; }); });
     }},
    {"process::start", [](endless_loop& again) { again([] { process::start(quick()); }); }},
    {"process::wait",
     [](endless_loop& again) {
       process child = process::start(quick());
       child.wait();
       again([&] { child.wait(); });
     }},
    {"process::terminate",
     [](endless_loop& again) {
       process child = process::start(quick());
       child.wait();
       again([&] { child.terminate(); });
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
