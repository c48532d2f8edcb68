// SPDX-License-Identifier: MIT
// What is told of a cancellation: why, where, by which fiber, and what made that fiber ask.
#include <sys/auxv.h>

#include <chrono>
#include <future>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::words;

namespace {

/// Waits to be cancelled, calls `tell` with the reason, and ends.
template <typename F>
void end_and_tell(F tell) {
  try {
    sleep();
  } catch (const cancelled& told) {
    tell(told);
    throw;
  }
}

/// Waits to be cancelled, and goes on.
/// Returns: why it was.
cancel_reason reason_of_the_end() {
  try {
    sleep();
  } catch (const cancelled& told) {
    return told;
  }
}

/// Returns: the reason, and all its causes.
words chain_of(const cancel_reason& last) {
  words told;
  for (const cancel_reason* each = &last; each != nullptr; each = each->cause()) {
    told.emplace_back(each->reason());
  }
  return told;
}

/// Spins a fiber that waits in `depth` more, each the child of the one before.
void nest(std::size_t depth, std::optional<cancel_reason>& deepest) {
  spin([depth, &deepest] {
    if (depth == 0) {
      deepest = reason_of_the_end();
    } else {
      nest(depth - 1, deepest);
      sleep();
    }
  });
}

}  // namespace

TEST_CASE("a cancellation says why, where and by which fiber it was asked for", "[reason]") {
  run([] {
    std::optional<cancel_reason> told;
    auto ended = spin([&] { told = reason_of_the_end(); });
    snooze();
    std::uint64_t asker = 0;
    unsigned line = 0;
    auto asks = spin([&] {
      asker = current().id();
      line = __LINE__ + 1;
      ended.cancel("the user hung up");
    });
    asks.await();
    ended.await();
    REQUIRE(told.has_value());
    CHECK(told->reason() == std::string_view("the user hung up"));
    CHECK(told->asked_at().line == line);
    CHECK(told->asked_by() == asker);
    CHECK(told->cause() == nullptr);
  });
}

TEST_CASE("the children of a cancelled fiber are told why it was cancelled", "[reason]") {
  run([] {
    std::optional<cancel_reason> deepest;
    const auto me = current().id();
    auto top = spin([&] {
      nest(1, deepest);
      sleep();
    });
    for (int i = 0; i < 5; ++i) snooze();
    top.cancel("the user hung up");
    CHECK_THROWS_AS(top.await(), fiber_cancelled);
    REQUIRE(deepest.has_value());
    CHECK(chain_of(*deepest) ==
          words{"its parent has ended", "its parent has ended", "the user hung up"});
    const cancel_reason& first = *deepest->cause()->cause();
    CHECK(first.asked_by() == me);
    CHECK(deepest->cause()->asked_by() == top.id());
    CHECK(std::string_view(first.asked_at().file).ends_with("cancel_reason_test.cpp"));
  });
}

TEST_CASE("a group that a time limit ends tells its fibers of the limit", "[reason]") {
  run([] {
    std::optional<cancel_reason> told;
    unsigned line = 0;
    const auto limited = [&] {
      group all;
      all.spin([&] { told = reason_of_the_end(); });
      all.await_all();
    };
    line = __LINE__ + 1;
    CHECK_THROWS_AS(with_timeout(1ms, limited), timed_out);
    REQUIRE(told.has_value());
    CHECK(chain_of(*told) == words{"its group has ended", "its time was up"});
    CHECK(told->asked_by() == current().id());
    CHECK(told->cause()->asked_at().line == line);
    CHECK(told->cause()->asked_by() == 0);
  });
}

TEST_CASE("a fiber that ends because of another's failure is told which one failed", "[reason]") {
  run([] {
    std::optional<cancel_reason> told;
    group all;
    all.spin([&] { told = reason_of_the_end(); });
    const fiber_ref failing = all.spin([] {
      snooze();
      throw testing::oops();
    });
    CHECK_THROWS_AS(all.await_all(), testing::oops);
    REQUIRE(told.has_value());
    CHECK(told->asked_by() == failing.id());
    CHECK(told->cause() == nullptr);
  });
}

TEST_CASE("what a cancelled fiber asks of others has its own reason as the cause", "[reason]") {
  run([] {
    std::optional<cancel_reason> told;
    auto other = spin([&] { told = reason_of_the_end(); });
    auto tidy = spin([&] {
      const testing::at_end ends([&] { other.cancel("its customer has gone"); });
      sleep();
    });
    snooze();
    tidy.cancel("the shop closes");
    CHECK_THROWS_AS(tidy.await(), fiber_cancelled);
    other.await();
    CHECK(chain_of(told.value()) == words{"its customer has gone", "the shop closes"});
  });
}

TEST_CASE("a fiber that awaits a cancelled one is told the causes", "[reason]") {
  run([] {
    fiber_ref below;
    auto above = spin([&] {
      below = spin({.name = "below"}, [] { sleep(); });
      sleep();
    });
    snooze();
    snooze();
    above.cancel("the user hung up");
    try {
      below.await();
      FAIL("it was cancelled");
    } catch (const fiber_cancelled& told) {
      CHECK(chain_of(told.why()) == words{"its parent has ended", "the user hung up"});
      const std::string_view text = told.what();
      CHECK(
          text.starts_with("fiber below was cancelled: its parent has ended; because: the user "
                           "hung up ("));
      CHECK(text.find("cancel_reason_test.cpp:") != text.npos);
      CHECK(told.fiber() == "below");
    }
  });
}

TEST_CASE("a fiber that was ended by somebody else's reason keeps that", "[reason]") {
  run([] {
    cancel_scope scope;
    auto body = spin([&] {
      std::optional<cancelled> kept;
      scope.call([&] {
        try {
          sleep();
        } catch (const cancelled& told) {
          kept = told;
          throw;
        }
      });
      throw cancelled(*kept);  // NOLINT: as it is
    });
    snooze();
    scope.cancel("enough");
    try {
      body.await();
      FAIL("it was cancelled");
    } catch (const fiber_cancelled& told) {
      CHECK(told.reason() == std::string_view("enough"));
    }
  });
}

TEST_CASE("a fiber on another thread is told why its parent here was cancelled", "[reason]") {
  run([] {
    testing::idle_thread there;
    std::promise<words> told;
    std::atomic<bool> runs{false};
    auto parent = spin([&] {
      there.itself.spin([&] {
        runs = true;
        told.set_value(chain_of(reason_of_the_end()));
      });
      sleep();
    });
    while (!runs) sleep_for(100us);
    parent.cancel("the user hung up");
    CHECK_THROWS_AS(parent.await(), fiber_cancelled);
    CHECK(told.get_future().get() == words{"its parent has ended", "the user hung up"});
  });
}

TEST_CASE("a call on another thread is told why its caller gives it up", "[reason]") {
  run([] {
    testing::idle_thread there;
    std::promise<words> told;
    std::atomic<bool> runs{false};
    cancel_scope scope;
    auto impatient = spin([&] {
      while (!runs) sleep_for(100us);
      scope.cancel("it takes too long");
    });
    CHECK_FALSE(scope.call([&] {
      there.itself.call([&] {
        runs = true;
        end_and_tell([&](const cancel_reason& why) { told.set_value(chain_of(why)); });
      });
    }));
    const words chain = told.get_future().get();
    REQUIRE(!chain.empty());
    CHECK(chain.back() == "it takes too long");
  });
}

TEST_CASE("a fiber that is away is told why it was cancelled at home", "[reason]") {
  run([] {
    testing::idle_thread there;
    std::atomic<bool> runs{false};
    std::optional<cancel_reason> told;
    auto traveller = spin([&] {
      portal away(there.itself);
      runs = true;
      told = reason_of_the_end();
    });
    auto boss = spin([&] {
      const testing::at_end ends([&] { traveller.cancel("its boss has left"); });
      sleep();
    });
    while (!runs) sleep_for(100us);
    boss.cancel("the shop closes");
    CHECK_THROWS_AS(boss.await(), fiber_cancelled);
    traveller.await();
    CHECK(chain_of(told.value()) == words{"its boss has left", "the shop closes"});
    CHECK(told->asked_by() == boss.id());
  });
}

TEST_CASE("what ends in a destructor has the reason that speaks there", "[reason]") {
  run([] {
    words by_limit, by_hand;
    auto body = spin([&] {
      const testing::at_end tidies([&] {
        move_on_after(1ms, [&] {
          group late;
          late.spin([&] { by_limit = chain_of(reason_of_the_end()); });
          late.await_all();
        });
        group rest;
        rest.spin([&] { by_hand = chain_of(reason_of_the_end()); });
        snooze();
      });
      sleep();
    });
    snooze();
    body.cancel("shutdown");
    CHECK_THROWS_AS(body.await(), fiber_cancelled);
    CHECK(by_limit == words{"its group has ended", "its time was up"});
    CHECK(by_hand == words{"its group has ended", "shutdown"});
  });
}

TEST_CASE("what motet asks for itself has no place", "[reason]") {
  run([] {
    std::optional<cancel_reason> loser, terminated;
    await_any([] { return 1; },
              [&] {
                loser = reason_of_the_end();
                return 2;
              });
    if (loser) {
      CHECK(loser->reason() == std::string_view("another was first"));
      CHECK(loser->asked_at().file == std::string_view());
    }
    auto parent = spin([&] {
      spin([&] { shield([&] { terminated = reason_of_the_end(); }); });
      sleep();
    });
    snooze();
    snooze();
    parent.cancel("enough");
    parent.terminate(1ms);
    CHECK_THROWS_AS(parent.await(), fiber_cancelled);
    CHECK(chain_of(terminated.value()) == words{"its parent has ended", "enough"});
    CHECK(terminated->asked_at().file == std::string_view());
  });
}

TEST_CASE("who waits for a value is told why nobody gives it", "[reason]") {
  run([] {
    promise<int> never;
    future<int> told = never.get_future();
    auto maker = spin([&never] {
      try {
        sleep();
      } catch (...) {
        never.set_exception(std::current_exception());
        throw;
      }
    });
    auto boss = spin([&] {
      const testing::at_end ends([&] { maker.cancel("its boss has left"); });
      sleep();
    });
    snooze();
    boss.cancel("the shop closes");
    try {
      told.get();
      FAIL("it has no value");
    } catch (const fiber_cancelled& ended) {
      CHECK(chain_of(ended.why()) == words{"its boss has left", "the shop closes"});
    }
    CHECK_THROWS_AS(maker.await(), fiber_cancelled);
  });
}

TEST_CASE("a plain thread that cancels is no fiber", "[reason]") {
  run([] {
    std::optional<cancel_reason> told;
    auto ended = spin([&] { told = reason_of_the_end(); });
    snooze();
    std::thread([other = fiber_ref(ended)] { other.cancel("from outside"); }).join();
    ended.await();
    CHECK(told.value().asked_by() == 0);
    CHECK(told->cause() == nullptr);
  });
}

TEST_CASE("reasons outlive what they tell of, on any thread", "[reason]") {
  std::vector<std::thread> readers;
  std::vector<words> seen(4);
  run([&] {
    std::optional<cancel_reason> deepest;
    auto top = spin([&] {
      nest(3, deepest);
      sleep();
    });
    for (int i = 0; i < 8; ++i) snooze();
    top.cancel("all end");
    CHECK_THROWS_AS(top.await(), fiber_cancelled);
    for (words& place : seen) {
      readers.emplace_back([&place, mine = deepest.value()] {
        cancel_reason another = mine;
        another = cancel_reason(mine);
        place = chain_of(another);
      });
    }
  });
  for (std::thread& each : readers) each.join();
  for (const words& chain : seen) {
    CHECK(chain.size() == 5);
    CHECK(chain.back() == "all end");
  }
}

TEST_CASE("the causes of a deep tree are given up one after the other", "[reason]") {
  run([] {
    const std::size_t depth = testing::scaled(4'000, 1'000);
    std::optional<cancel_reason> deepest;
    auto top = spin([&] {
      nest(depth, deepest);
      sleep();
    });
    while (deepest.has_value() || top.state() != fiber_state::waiting) snooze();
    for (std::size_t i = 0; i < depth + 2; ++i) snooze();
    top.cancel("the root");
    CHECK_THROWS_AS(top.await(), fiber_cancelled);
    REQUIRE(deepest.has_value());
    std::size_t causes = 0;
    for (const cancel_reason* each = deepest->cause(); each != nullptr; each = each->cause()) {
      ++causes;
      if (each->cause() == nullptr) CHECK(each->reason() == std::string_view("the root"));
    }
    CHECK(causes == depth + 1);
    try {
      throw fiber_cancelled("deep", *deepest);
    } catch (const fiber_cancelled& told) {
      CHECK(std::string_view(told.what()).size() < 500);
      CHECK(std::string_view(told.what()).find("the root") != std::string_view::npos);
    }
    // The last owner lets go on a small stack; how small depends on the processor's registers.
    const std::size_t small = ::getauxval(AT_MINSIGSTKSZ) + std::size_t{16} * 1024;
    spin({.stack_size = small}, [&] { deepest.reset(); }).await();
  });
}
