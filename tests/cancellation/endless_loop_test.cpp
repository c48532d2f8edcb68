// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: fibers, groups, scopes and time.
#include "cancellation/endless_loop.hpp"

#include <motet/observe/debug.hpp>
#include <motet/runtime/embed.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#ifdef __cpp_impl_coroutine
#include <motet/fibers/coroutine.hpp>
#endif

namespace {

using namespace testing;

/// Has had enough when it is told anything.
struct content {
  bool on_value(std::size_t, int) { return true; }
  bool on_failure(std::size_t, const std::exception_ptr&) { return true; }
};

/// A fiber that has ended with a value.
fiber<std::optional<int>> ended() {
  auto one = spin([] { return std::optional(1); });
  one.await();
  return one;
}

const switchpoint_table table = {
    {"snooze", [](endless_loop& again) { again([] { snooze(); }); }},
    {"snooze, beside another fiber",
     [](endless_loop& again) {
       group others;
       others.spin([] {
         for (;;) snooze();
       });
       again([] { snooze(); });
     }},
    {"checkpoint", [](endless_loop& again) { again([] { checkpoint(); }); }},
    {"suspend",
     [](endless_loop& again) {
       group others;
       others.spin([waiting = current()] {
         for (;;) {
           waiting.schedule();
           snooze();
         }
       });
       again([] { suspend(); });
     }},
    {"suspend_with",
     [](endless_loop& again) { again([] { suspend_with([](resumer<> answer) { answer(); }); }); }},
    {"fiber_ref::await",
     [](endless_loop& again) {
       const fiber_ref over = spin([] {});
       over.await();
       again([&] { over.await(); });
     }},
    {"fiber::await",
     [](endless_loop& again) {
       const auto over = ended();
       again([&] { over.await(); });
     }},
    {"fiber::await, moved",
     [](endless_loop& again) { again([] { spin([] { return 1; }).await(); }); }},
    {"sleep_for", [](endless_loop& again) { again([] { sleep_for(0s); }); }},
    {"sleep_for, less than nothing", [](endless_loop& again) { again([] { sleep_for(-1s); }); }},
    {"sleep_until",
     [](endless_loop& again) { again([past = motet::clock::now()] { sleep_until(past); }); }},
    {"await_all", [](endless_loop& again) { again([] { await_all(); }); }},
    {"await_all, a range without bodies",
     [](endless_loop& again) {
       std::vector<std::function<void()>> none;
       again([&] { await_all(none); });
     }},
    {"await_all, bodies", [](endless_loop& again) { again([] { await_all([] {}, [] {}); }); }},
    {"await_all, handles",
     [](endless_loop& again) {
       const auto over = ended();
       again([&] { await_all(over, over); });
     }},
    {"await_all, a range without handles",
     [](endless_loop& again) {
       const std::vector<fiber_ref> none;
       again([&] { await_all(none); });
     }},
    {"await_all, a range of handles",
     [](endless_loop& again) {
       const std::vector<fiber_ref> over(2, fiber_ref(ended()));
       again([&] { await_all(over); });
     }},
    {"await_any", [](endless_loop& again) { again([] { await_any([] {}, [] {}); }); }},
    {"await_any, handles",
     [](endless_loop& again) {
       const auto over = ended();
       again([&] { await_any(over, over); });
     }},
    {"await_any, a range of handles",
     [](endless_loop& again) {
       const std::vector<fiber_ref> over(2, fiber_ref(ended()));
       again([&] { await_any(over); });
     }},
    {"first_value",
     [](endless_loop& again) { again([] { first_value([] { return std::optional(1); }); }); }},
    {"first_value, handles",
     [](endless_loop& again) {
       const auto over = ended();
       again([&] { first_value(over); });
     }},
    {"await_with",
     [](endless_loop& again) {
       content joiner;
       again([&] { await_with(joiner, [] { return 1; }); });
     }},
    {"await_with, a range without bodies",
     [](endless_loop& again) {
       content joiner;
       std::vector<std::function<int()>> none;
       again([&] { await_with(joiner, none); });
     }},
    {"group::spin",
     [](endless_loop& again) {
       constexpr std::size_t room = 10'000;
       group all(room);
       again([&] {
         if (!again.asked()) all.await_all();
         if (all.size() == room) throw std::runtime_error("nothing until it must wait");
         all.spin([] {});
       });
     }},
    {"group::start",
     [](endless_loop& again) {
       group all;
       again([&] { all.start([](promise<void>& ready) { ready.set_value(); }); });
     }},
    {"group::await_all",
     [](endless_loop& again) {
       group none;
       again([&] { none.await_all(); });
     }},
    {"group::next",
     [](endless_loop& again) {
       group none;
       again([&] { none.next(); });
     }},
    {"group::next, of one more",
     [](endless_loop& again) {
       group all;
       again([&] {
         const auto one = all.spin([] {});
         all.next();
       });
     }},
    {"with_timeout",
     [](endless_loop& again) { again([] { with_timeout(1h, [] { checkpoint(); }); }); }},
    {"with_deadline",
     [](endless_loop& again) {
       again([] { with_deadline(motet::clock::now() + 1h, [] { checkpoint(); }); });
     }},
    {"move_on_after",
     [](endless_loop& again) { again([] { move_on_after(1h, [] { checkpoint(); }); }); }},
    {"move_on_when_stopped",
     [](endless_loop& again) {
       std::stop_source never;
       again([&] { move_on_when_stopped(never.get_token(), [] { checkpoint(); }); });
     }},
    {"with_stop_token",
     [](endless_loop& again) {
       again([] { with_stop_token([](const std::stop_token&) { checkpoint(); }); });
     }},
    {"cancel_scope::call",
     [](endless_loop& again) {
       cancel_scope never;
       again([&] { never.call([] { checkpoint(); }); });
     }},
    {"retry", [](endless_loop& again) { again([] { retry({}, [] { return 1; }); }); }},
    {"every", [](endless_loop& again) { again([] { every(1ns, [] { return false; }); }); }},
    {"supervise",
     [](endless_loop& again) {
       again([] { supervise({}, child_spec{.restart = restart_policy::never, .make = [] {}}); });
     }},
#ifdef __cpp_impl_coroutine
    {"await_coro", [](endless_loop& again) { again([] { await_coro(std::suspend_never()); }); }},
#endif
    {"dump",
     [](endless_loop& again) {
       again([] {
         std::ostringstream text;
         dump(text, {.all_threads = true});
       });
     }},
    {"run_ready",
     [](endless_loop& again) {
       again([] { on_sim() ? snooze() : run_ready(); });  // no foreign loop waits for sim
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
