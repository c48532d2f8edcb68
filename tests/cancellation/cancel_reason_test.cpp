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
  } catch (const cancelled& error) {
    tell(error);
    throw;
  }
}

/// Waits to be cancelled, and goes on.
/// Returns: why it was.
cancel_reason reason_of_the_end() {
  try {
    sleep();
  } catch (const cancelled& error) {
    return error;
  }
}

/// Returns: the reason, and all its causes.
words chain_of(const cancel_reason& last) {
  words texts;
  for (const cancel_reason* reason = &last; reason != nullptr; reason = reason->cause()) {
    texts.emplace_back(reason->reason());
  }
  return texts;
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

TEST_CASE("cancel_reason tells why, where and by which fiber a cancellation was requested",
          "[reason]") {
  run([] {
    std::optional<cancel_reason> reason;
    auto victim = spin([&] { reason = reason_of_the_end(); });
    snooze();
    std::uint64_t asker = 0;
    unsigned line = 0;
    auto asks = spin([&] {
      asker = current().id();
      line = __LINE__ + 1;
      victim.cancel("the user hung up");
    });
    asks.await();
    victim.await();
    REQUIRE(reason.has_value());
    CHECK(reason->reason() == std::string_view("the user hung up"));
    CHECK(reason->asked_at().line == line);
    CHECK(reason->asked_by() == asker);
    CHECK(reason->cause() == nullptr);
  });
}

TEST_CASE("cancel_reason: the children of a cancelled fiber receive its reason", "[reason]") {
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

TEST_CASE("cancel_reason: fibers of a group that a time limit ends receive the limit as the cause",
          "[reason]") {
  run([] {
    std::optional<cancel_reason> reason;
    unsigned line = 0;
    const auto limited_call = [&] {
      group fibers;
      fibers.spin([&] { reason = reason_of_the_end(); });
      fibers.await_all();
    };
    line = __LINE__ + 1;
    CHECK_THROWS_AS(with_timeout(1ms, limited_call), timed_out);
    REQUIRE(reason.has_value());
    CHECK(chain_of(*reason) == words{"its group has ended", "its time was up"});
    CHECK(reason->asked_by() == current().id());
    CHECK(reason->cause()->asked_at().line == line);
    CHECK(reason->cause()->asked_by() == 0);
  });
}

TEST_CASE("cancel_reason names the failed fiber to the fibers that end because of it", "[reason]") {
  run([] {
    std::optional<cancel_reason> reason;
    group fibers;
    fibers.spin([&] { reason = reason_of_the_end(); });
    const fiber_ref failing = fibers.spin([] {
      snooze();
      throw testing::oops();
    });
    CHECK_THROWS_AS(fibers.await_all(), testing::oops);
    REQUIRE(reason.has_value());
    CHECK(reason->asked_by() == failing.id());
    CHECK(reason->cause() == nullptr);
  });
}

TEST_CASE("cancel_reason: a request by a cancelled fiber has that fiber's reason as the cause",
          "[reason]") {
  run([] {
    std::optional<cancel_reason> reason;
    auto second = spin([&] { reason = reason_of_the_end(); });
    auto tidy = spin([&] {
      const testing::at_end ends([&] { second.cancel("its customer has gone"); });
      sleep();
    });
    snooze();
    tidy.cancel("the shop closes");
    CHECK_THROWS_AS(tidy.await(), fiber_cancelled);
    second.await();
    CHECK(chain_of(reason.value()) == words{"its customer has gone", "the shop closes"});
  });
}

TEST_CASE("cancel_reason: fiber_cancelled has the causes of the awaited fiber's end", "[reason]") {
  run([] {
    fiber_ref target;
    auto awaiter = spin([&] {
      target = spin({.name = "below"}, [] { sleep(); });
      sleep();
    });
    snooze();
    snooze();
    awaiter.cancel("the user hung up");
    try {
      target.await();
      FAIL("it was cancelled");
    } catch (const fiber_cancelled& error) {
      CHECK(chain_of(error.why()) == words{"its parent has ended", "the user hung up"});
      const std::string_view text = error.what();
      CHECK(
          text.starts_with("fiber below was cancelled: its parent has ended; because: the user "
                           "hung up ("));
      CHECK(text.find("cancel_reason_test.cpp:") != text.npos);
      CHECK(error.fiber() == "below");
    }
  });
}

TEST_CASE("cancel_reason stays the first one in a fiber that ends with another fiber's reason",
          "[reason]") {
  run([] {
    cancel_scope scope;
    auto body = spin([&] {
      std::optional<cancelled> stored;
      scope.call([&] {
        try {
          sleep();
        } catch (const cancelled& error) {
          stored = error;
          throw;
        }
      });
      throw cancelled(*stored);  // NOLINT: as it is
    });
    snooze();
    scope.cancel("enough");
    try {
      body.await();
      FAIL("it was cancelled");
    } catch (const fiber_cancelled& error) {
      CHECK(error.reason() == std::string_view("enough"));
    }
  });
}

TEST_CASE("cancel_reason reaches a fiber on another thread whose parent is cancelled here",
          "[reason]") {
  run([] {
    testing::idle_thread worker;
    std::promise<words> texts;
    std::atomic<bool> runs{false};
    auto parent = spin([&] {
      worker.thread.spin([&] {
        runs = true;
        texts.set_value(chain_of(reason_of_the_end()));
      });
      sleep();
    });
    while (!runs) sleep_for(100us);
    parent.cancel("the user hung up");
    CHECK_THROWS_AS(parent.await(), fiber_cancelled);
    CHECK(texts.get_future().get() == words{"its parent has ended", "the user hung up"});
  });
}

TEST_CASE("cancel_reason reaches a call on another thread that its caller gives up", "[reason]") {
  run([] {
    testing::idle_thread worker;
    std::promise<words> texts;
    std::atomic<bool> runs{false};
    cancel_scope scope;
    auto impatient = spin([&] {
      while (!runs) sleep_for(100us);
      scope.cancel("it takes too long");
    });
    CHECK_FALSE(scope.call([&] {
      worker.thread.call([&] {
        runs = true;
        end_and_tell([&](const cancel_reason& reason) { texts.set_value(chain_of(reason)); });
      });
    }));
    const words chain = texts.get_future().get();
    REQUIRE(!chain.empty());
    CHECK(chain.back() == "it takes too long");
  });
}

TEST_CASE("cancel_reason reaches a fiber that is visiting another thread", "[reason]") {
  run([] {
    testing::idle_thread worker;
    std::atomic<bool> runs{false};
    std::optional<cancel_reason> reason;
    auto traveller = spin([&] {
      portal away(worker.thread);
      runs = true;
      reason = reason_of_the_end();
    });
    auto boss = spin([&] {
      const testing::at_end ends([&] { traveller.cancel("its boss has left"); });
      sleep();
    });
    while (!runs) sleep_for(100us);
    boss.cancel("the shop closes");
    CHECK_THROWS_AS(boss.await(), fiber_cancelled);
    traveller.await();
    CHECK(chain_of(reason.value()) == words{"its boss has left", "the shop closes"});
    CHECK(reason->asked_by() == boss.id());
  });
}

TEST_CASE("cancel_reason: requests from a destructor have the reason that runs it as the cause",
          "[reason]") {
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

TEST_CASE("cancel_reason of motet's own requests has no call site", "[reason]") {
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

TEST_CASE("cancel_reason: a waiter learns why its promise is never fulfilled", "[reason]") {
  run([] {
    promise<int> never;
    future<int> answer = never.get_future();
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
      answer.get();
      FAIL("it has no value");
    } catch (const fiber_cancelled& error) {
      CHECK(chain_of(error.why()) == words{"its boss has left", "the shop closes"});
    }
    CHECK_THROWS_AS(maker.await(), fiber_cancelled);
  });
}

TEST_CASE("cancel_reason names no fiber if a plain thread cancels", "[reason]") {
  run([] {
    std::optional<cancel_reason> reason;
    auto victim = spin([&] { reason = reason_of_the_end(); });
    snooze();
    std::thread([handle = fiber_ref(victim)] { handle.cancel("from outside"); }).join();
    victim.await();
    CHECK(reason.value().asked_by() == 0);
    CHECK(reason->cause() == nullptr);
  });
}

TEST_CASE("cancel_reason outlives its fibers, on any thread", "[reason]") {
  std::vector<std::thread> readers;
  std::vector<words> texts_read(4);
  run([&] {
    std::optional<cancel_reason> deepest;
    auto top = spin([&] {
      nest(3, deepest);
      sleep();
    });
    for (int i = 0; i < 8; ++i) snooze();
    top.cancel("all end");
    CHECK_THROWS_AS(top.await(), fiber_cancelled);
    for (words& place : texts_read) {
      readers.emplace_back([&place, reason = deepest.value()] {
        cancel_reason copy = reason;
        copy = cancel_reason(reason);
        place = chain_of(copy);
      });
    }
  });
  for (std::thread& thread : readers) thread.join();
  for (const words& chain : texts_read) {
    CHECK(chain.size() == 5);
    CHECK(chain.back() == "all end");
  }
}

TEST_CASE("cancel_reason: the causes of a deep tree are freed without recursion", "[reason]") {
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
    for (const cancel_reason* reason = deepest->cause(); reason != nullptr;
         reason = reason->cause()) {
      ++causes;
      if (reason->cause() == nullptr) CHECK(reason->reason() == std::string_view("the root"));
    }
    CHECK(causes == depth + 1);
    try {
      throw fiber_cancelled("deep", *deepest);
    } catch (const fiber_cancelled& error) {
      CHECK(std::string_view(error.what()).size() < 500);
      CHECK(std::string_view(error.what()).find("the root") != std::string_view::npos);
    }
    // The last owner lets go on a small stack; how small depends on the processor's registers.
    const std::size_t small = ::getauxval(AT_MINSIGSTKSZ) + std::size_t{16} * 1024;
    spin({.stack_size = small}, [&] { deepest.reset(); }).await();
  });
}
