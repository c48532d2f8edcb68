// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: channels and their like, and choices among them.
#include <optional>
#include <vector>

#include "cancellation/endless_loop.hpp"

namespace {

using namespace testing;

const switchpoint_table table = {
    {"channel::push",
     [](endless_loop& again) {
       channel<int> items(1);
       again([&] {
         items.push(1);
         items.try_pop();
       });
     }},
    {"channel::push, local",
     [](endless_loop& again) {
       local::channel<int> items(unbounded);
       again([&] {
         items.push(1);
         items.try_pop();
       });
     }},
    {"channel::pop",
     [](endless_loop& again) {
       channel<int> items(1);
       again([&] {
         items.try_push(1);
         items.pop();
       });
     }},
    {"channel::pop, closed",
     [](endless_loop& again) {
       channel<int> over;
       over.close();
       again([&] { over.pop(); });
     }},
    {"channel::begin",
     [](endless_loop& again) {
       channel<int> over;
       over.close();
       again([&] { over.begin(); });
     }},
    {"pop_iterator::operator++",
     [](endless_loop& again) {
       channel<int> items(1);
       items.try_push(1);
       auto each = items.begin();
       again([&] {
         items.try_push(1);
         ++each;
       });
     }},
    {"sender::push",
     [](endless_loop& again) {
       auto ends = make_channel<int>(1);
       again([&to = ends.first, &from = ends.second] {
         to.push(1);
         from.try_pop();
       });
     }},
    {"receiver::pop",
     [](endless_loop& again) {
       auto ends = make_channel<int>(1);
       again([&to = ends.first, &from = ends.second] {
         to.try_push(1);
         from.pop();
       });
     }},
    {"receiver::begin",
     [](endless_loop& again) {
       auto ends = make_channel<int>(1);
       again([&to = ends.first, &from = ends.second] {
         to.try_push(1);
         from.begin();
       });
     }},
    {"broadcast::pop",
     [](endless_loop& again) {
       broadcast<int> items(1);
       auto seen = items.subscribe();
       again([&] {
         items.push(1);
         seen.pop();
       });
     }},
    {"broadcast::pop, closed",
     [](endless_loop& again) {
       broadcast<int> over(1);
       auto seen = over.subscribe();
       over.close();
       again([&] { seen.pop(); });
     }},
    {"watch::next",
     [](endless_loop& again) {
       watch<int> state(0);
       auto seen = state.subscribe();
       again([&] {
         state.set(1);
         seen.next();
       });
     }},
    {"actor::send",
     [](endless_loop& again) {
       actor<int> listens([](auto& inbox) {
         for (;;) inbox.receive();
       });
       again([&] { listens.send(1); });
     }},
    {"actor::await",
     [](endless_loop& again) {
       actor<int> over([](auto&) {});
       over.await();
       again([&] { over.await(); });
     }},
    {"actor::receive",
     [](endless_loop& again) {
       std::optional<actor<int>> itself;
       itself.emplace([&](auto& inbox) {
         again([&] {
           itself->try_send(1);
           inbox.receive();
         });
       });
       itself->await();
     }},
    {"actor::receive_if",
     [](endless_loop& again) {
       std::optional<actor<int>> itself;
       itself.emplace([&](auto& inbox) {
         again([&] {
           itself->try_send(1);
           inbox.receive_if([](int) { return true; });
         });
       });
       itself->await();
     }},
    {"select",
     [](endless_loop& again) {
       event happened;
       happened.set();
       again([&] { select(on_set(happened)); });
     }},
    {"select, out of time at once",
     [](endless_loop& again) {
       channel<int> empty;
       again([&] { select(on_pop(empty, [](std::optional<int>) {}), on_timeout(0s)); });
     }},
    {"select, a pop",
     [](endless_loop& again) {
       channel<int> over;
       over.close();
       again([&] { select(on_pop(over, [](std::optional<int>) {}), on_timeout(0s)); });
     }},
    {"select, in order",
     [](endless_loop& again) {
       event happened;
       happened.set();
       again([&] { select(in_order, on_set(happened), on_timeout(0s)); });
     }},
    {"select, a descriptor",
     [](endless_loop& again) {
       const auto ends = make_pipe();
       again([&] { select(on_writable(ends.second()), on_timeout(0s)); });
     }},
    {"select, an end",
     [](endless_loop& again) {
       const auto over = spin([] {});
       snooze();
       again([&] { select(on_end(over)); });
     }},
    {"select, a range",
     [](endless_loop& again) {
       event happened;
       happened.set();
       std::vector<decltype(on_set(happened))> cases;
       cases.push_back(on_set(happened));
       again([&] { select(cases); });
     }},
    {"select, a range in order",
     [](endless_loop& again) {
       std::vector<decltype(on_timeout(0s))> cases;
       cases.push_back(on_timeout(0s));
       again([&] { select(in_order, cases); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
