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
  auto handle = spin([] { return std::optional(1); });
  handle.await();
  return handle;
}

const switchpoint_table table = {
    {"snooze", [](endless_loop& again) { again([] { snooze(); }); }},
    {"snooze, beside another fiber",
     [](endless_loop& again) {
       group helpers;
       helpers.spin([] {
         for (;;) snooze();
       });
       again([] { snooze(); });
     }},
    {"checkpoint", [](endless_loop& again) { again([] { checkpoint(); }); }},
    {"suspend",
     [](endless_loop& again) {
       group helpers;
       helpers.spin([waiter = current()] {
         for (;;) {
           waiter.schedule();
           snooze();
         }
       });
       again([] { suspend(); });
     }},
    {"suspend_with",
     [](endless_loop& again) { again([] { suspend_with([](resumer<> answer) { answer(); }); }); }},
    {"fiber_ref::await",
     [](endless_loop& again) {
       const fiber_ref dead = spin([] {});
       dead.await();
       again([&] { dead.await(); });
     }},
    {"fiber::await",
     [](endless_loop& again) {
       const auto dead = ended();
       again([&] { dead.await(); });
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
       std::vector<std::function<void()>> functions;
       again([&] { await_all(functions); });
     }},
    {"await_all, bodies", [](endless_loop& again) { again([] { await_all([] {}, [] {}); }); }},
    {"await_all, handles",
     [](endless_loop& again) {
       const auto dead = ended();
       again([&] { await_all(dead, dead); });
     }},
    {"await_all, a range without handles",
     [](endless_loop& again) {
       const std::vector<fiber_ref> no_fibers;
       again([&] { await_all(no_fibers); });
     }},
    {"await_all, a range of handles",
     [](endless_loop& again) {
       const std::vector<fiber_ref> dead(2, fiber_ref(ended()));
       again([&] { await_all(dead); });
     }},
    {"await_any", [](endless_loop& again) { again([] { await_any([] {}, [] {}); }); }},
    {"await_any, handles",
     [](endless_loop& again) {
       const auto dead = ended();
       again([&] { await_any(dead, dead); });
     }},
    {"await_any, a range of handles",
     [](endless_loop& again) {
       const std::vector<fiber_ref> dead(2, fiber_ref(ended()));
       again([&] { await_any(dead); });
     }},
    {"first_value",
     [](endless_loop& again) { again([] { first_value([] { return std::optional(1); }); }); }},
    {"first_value, handles",
     [](endless_loop& again) {
       const auto dead = ended();
       again([&] { first_value(dead); });
     }},
    {"await_with",
     [](endless_loop& again) {
       content joiner;
       again([&] { await_with(joiner, [] { return 1; }); });
     }},
    {"await_with, a range without bodies",
     [](endless_loop& again) {
       content joiner;
       std::vector<std::function<int()>> functions;
       again([&] { await_with(joiner, functions); });
     }},
    {"group::spin",
     [](endless_loop& again) {
       constexpr std::size_t room = 10'000;
       group members(room);
       again([&] {
         if (!again.asked()) members.await_all();
         if (members.size() == room) throw std::runtime_error("nothing until it must wait");
         members.spin([] {});
       });
     }},
    {"group::start",
     [](endless_loop& again) {
       group members;
       again([&] { members.start([](promise<void>& ready) { ready.set_value(); }); });
     }},
    {"group::await_all",
     [](endless_loop& again) {
       group members;
       again([&] { members.await_all(); });
     }},
    {"group::next",
     [](endless_loop& again) {
       group members;
       again([&] { members.next(); });
     }},
    {"group::next, of one more",
     [](endless_loop& again) {
       group members;
       again([&] {
         const auto member = members.spin([] {});
         members.next();
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
