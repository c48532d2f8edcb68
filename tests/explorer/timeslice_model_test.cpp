// SPDX-License-Identifier: MIT
// How a timeslice_lock is handed from thread to thread: sync/timeslice_lock.cpp.
#include <chrono>
#include <motet/sync/timeslice_lock.hpp>
#include <string>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"

using namespace explorer;

TEST_CASE("timeslice_lock::unlock() hands the lock and the guarded state on", "[explorer]") {
  const auto model = [](world& all) {
    motet::timeslice_lock turn;
    plain<int> count(0);
    constexpr int threads = 3;
    for (int i = 0; i < threads; ++i) {
      all.add_thread([&] {
        turn.lock();
        count.set(count.get() + 1);
        turn.unlock();
      });
    }
    all.run();
    check(count.get() == threads, "two threads had the lock at once");
    check(turn.try_lock(), "the lock is not free in the end");
  };
  check_model("three threads with one lock", bounded(2), model,
              {{kind::torn, "sharing.hpp:lock"},
               {kind::relaxed, "sharing.hpp:unlock"},
               {kind::relaxed, "set"},
               {kind::relaxed, "wait_until"}});
}

TEST_CASE("timeslice_lock::yield_if_due() lets a waiter go first", "[explorer]") {
  bool was_forced = false;
  const auto model = [&](world& all) {
    motet::timeslice_lock turn(std::chrono::nanoseconds(1));
    plain<std::string> order;
    const auto enter = [&](char name) { order.set(order.get() + name); };
    all.add_thread([&] {
      turn.lock();
      enter('a');
      turn.yield_if_due();
      enter('a');
      turn.unlock();
    });
    all.add_thread([&] {
      turn.lock();
      enter('b');
      turn.unlock();
    });
    all.run();
    const bool yielded = turn.stats().forced > 0;
    was_forced = was_forced || yielded;
    check(order.get().size() == 3, "two threads had the lock at once");
    check(yielded == (order.get() == "aba"), "the waiter did not have the next turn");
  };
  check_model(
      "a holder that yields and a waiter", {}, model,
      {{kind::torn, "sharing.hpp:lock"}, {kind::relaxed, "set"}, {kind::blind, "wait_until", 1}});
  CHECK(was_forced);
}
