// SPDX-License-Identifier: MIT
// What no switchpoint throws any more: on_unhandled is told of it, once.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;

namespace {

/// Options that count what on_unhandled is told.
struct counting {
  counting() {
    config.deadlock_report = 0ms;
    config.on_unhandled = [this](const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const oops&) {
        ++count;
      } catch (...) {
        count = -1000;
      }
    };
  }
  options config;
  std::atomic<int> count{0};
};

}  // namespace

TEST_CASE("options::on_unhandled receives exceptions raised after the last switchpoint",
          "[raise]") {
  counting counter;
  run(counter.config, [&] {
    channel<int> items(1);
    auto popping = spin([&] { return *items.pop(); });
    testing::settle();
    items.push(7);  // its wait is over
    CHECK(popping.raise(oops()));
    CHECK_FALSE(popping.raise(oops()));
    CHECK(popping.await() == 7);
    CHECK(counter.count == 1);

    auto failing = spin([&] {
      items.pop();
      throw std::logic_error("its own");
    });
    testing::settle();
    items.push(1);
    CHECK(failing.raise(oops()));
    CHECK_THROWS_AS(failing.await(), std::logic_error);
    CHECK(counter.count == 2);

    auto late = spin([] {});
    late.await();
    CHECK_FALSE(late.raise(oops()));
  });
  CHECK(counter.count == 2);
}

TEST_CASE("options::on_unhandled receives an exception raised after a read had its bytes",
          "[raise]") {
  counting counter;
  run(counter.config, [&] {
    auto ends = testing::make_socket_pair();
    auto second_ends = testing::make_socket_pair();
    int accepted = 0;
    for (int round = 0; round < 20; ++round) {
      std::array<std::byte, 8> buffer{};
      std::array<std::byte, 8> second_buffer{};
      fiber_ref victim;
      auto raising = spin([&] {
        io::read(second_ends.first(), second_buffer);
        return victim.raise(oops());  // the victim's read is over by now, or not yet
      });
      auto reader = spin([&] { return io::read(ends.first(), buffer); });
      victim = reader;
      testing::settle();
      // Kernels complete the two reads in the order of the writes, or in the reverse order.
      const bool raises_first = round % 2 == 0;
      if (raises_first) REQUIRE(::write(second_ends.second(), "x", 1) == 1);
      REQUIRE(::write(ends.second(), "abc", 3) == 3);
      if (!raises_first) REQUIRE(::write(second_ends.second(), "x", 1) == 1);
      std::size_t count = 0;
      try {
        count = reader.await();
      } catch (const oops&) {
        CHECK(testing::take_all(ends.first()) == "abc");
        continue;
      }
      CHECK(count == 3);
      const int too_late = raising.await() ? 1 : 0;
      accepted += too_late;
      CHECK(counter.count.exchange(0) == too_late);
    }
    // libev makes a call when its descriptor's turn has come, so it may be interrupted until then.
    if (backend_name() != "libev" && !testing::kernel_acts_any_time()) CHECK(accepted > 0);
  });
}

TEST_CASE("options::on_unhandled receives an exception raised in main at its end", "[raise]") {
  counting counter;
  run(counter.config, [&] {
    const fiber_ref me = current();
    spin([me] { CHECK(me.raise(oops())); });
    notification never;
    channel<int> items(1);
    auto giving = spin([&] { items.push(1); });
    shield([&] { giving.await(); });
  });
  CHECK(counter.count == 1);
}

TEST_CASE("options::on_unhandled receives an exception that another thread raises too late",
          "[raise][thread]") {
  counting counter;
  thread worker(counter.config, [] {
    for (;;) {
      try {
        sleep();
      } catch (const oops&) {
        // of a fiber that has ended by it before it was awaited
      }
    }
  });
  int untold = 0;
  const std::size_t rounds = testing::scaled(20'000, 500);
  for (std::size_t round = 0; round < rounds; ++round) {
    fiber_ref brief = worker.spin([] { snooze(); });
    const bool accepted = brief.raise(oops());
    try {
      brief.await();
    } catch (const oops&) {
      continue;  // it came in time
    }
    if (accepted) ++untold;
  }
  worker.cancel();
  CHECK_THROWS_AS(worker.await(), fiber_cancelled);
  CHECK(counter.count == untold);
}

TEST_CASE("options::on_unhandled may wait, and receives every failure", "[failures]") {
  std::vector<std::string> messages;
  options config;
  config.on_unhandled = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      messages.emplace_back(e.what());
    }
    sleep_for(1ms);
  };
  CHECK_THROWS_WITH(run(config,
                        [] {
                          spin([] { throw std::runtime_error("one"); });
                          spin([] { throw std::runtime_error("two"); });
                          throw std::runtime_error("the body");
                        }),
                    "the body");
  CHECK(messages.empty());  // neither has begun
  CHECK_THROWS_WITH(run(config,
                        [] {
                          auto failing = spin([] { throw std::runtime_error("one"); });
                          auto two = spin([] { throw std::runtime_error("two"); });
                          shield([] {
                            snooze();
                            snooze();
                          });
                          throw std::runtime_error("the body");
                        }),
                    "the body");
  CHECK(messages == std::vector<std::string>{"one", "two"});
}
