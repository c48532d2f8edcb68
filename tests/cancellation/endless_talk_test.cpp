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
       channel<int> closed_channel;
       closed_channel.close();
       again([&] { closed_channel.pop(); });
     }},
    {"channel::begin",
     [](endless_loop& again) {
       channel<int> closed_channel;
       closed_channel.close();
       again([&] { closed_channel.begin(); });
     }},
    {"pop_iterator::operator++",
     [](endless_loop& again) {
       channel<int> items(1);
       items.try_push(1);
       auto item = items.begin();
       again([&] {
         items.try_push(1);
         ++item;
       });
     }},
    {"sender::push",
     [](endless_loop& again) {
       auto ends = make_channel<int>(1);
       again([&tx = ends.first, &rx = ends.second] {
         tx.push(1);
         rx.try_pop();
       });
     }},
    {"receiver::pop",
     [](endless_loop& again) {
       auto ends = make_channel<int>(1);
       again([&tx = ends.first, &rx = ends.second] {
         tx.try_push(1);
         rx.pop();
       });
     }},
    {"receiver::begin",
     [](endless_loop& again) {
       auto ends = make_channel<int>(1);
       again([&tx = ends.first, &rx = ends.second] {
         tx.try_push(1);
         rx.begin();
       });
     }},
    {"broadcast::pop",
     [](endless_loop& again) {
       broadcast<int> items(1);
       auto subscription = items.subscribe();
       again([&] {
         items.push(1);
         subscription.pop();
       });
     }},
    {"broadcast::pop, closed",
     [](endless_loop& again) {
       broadcast<int> closed_items(1);
       auto subscription = closed_items.subscribe();
       closed_items.close();
       again([&] { subscription.pop(); });
     }},
    {"watch::next",
     [](endless_loop& again) {
       watch<int> state(0);
       auto subscription = state.subscribe();
       again([&] {
         state.set(1);
         subscription.next();
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
       actor<int> closed_items([](auto&) {});
       closed_items.await();
       again([&] { closed_items.await(); });
     }},
    {"actor::receive",
     [](endless_loop& again) {
       std::optional<actor<int>> receiver;
       receiver.emplace([&](auto& inbox) {
         again([&] {
           receiver->try_send(1);
           inbox.receive();
         });
       });
       receiver->await();
     }},
    {"actor::receive_if",
     [](endless_loop& again) {
       std::optional<actor<int>> receiver;
       receiver.emplace([&](auto& inbox) {
         again([&] {
           receiver->try_send(1);
           inbox.receive_if([](int) { return true; });
         });
       });
       receiver->await();
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
       channel<int> closed_channel;
       closed_channel.close();
       again([&] { select(on_pop(closed_channel, [](std::optional<int>) {}), on_timeout(0s)); });
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
       const auto dead = spin([] {});
       snooze();
       again([&] { select(on_end(dead)); });
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
