// SPDX-License-Identifier: MIT
// Scopes that are ended by hand.
#include <chrono>
#include <motet/motet.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::throws_cancelled;

TEST_CASE("cancel_scope::cancel() ends the scope's call and nothing else", "[scope]") {
  run([] {
    cancel_scope scope;
    auto canceller = spin([&] { CHECK(scope.cancel("the user hung up")); });
    bool inner_told = false;
    const bool ended = !scope.call([&] {
      try {
        sleep();
      } catch (const cancelled& error) {
        inner_told = scope.caused(error);
        CHECK(error.reason() == std::string_view("the user hung up"));
        CHECK(error.asked_by() == canceller.id());
        throw;
      }
    });
    CHECK(ended);
    CHECK(inner_told);
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("cancel_scope::call() returns a finished call's value even if the scope was cancelled",
          "[scope]") {
  run([] {
    cancel_scope scope;
    CHECK(scope.call([] { return 7; }) == 7);
    CHECK(scope.why() == nullptr);
    CHECK(scope.call([&] { return scope.cancel() ? 8 : 0; }) == 8);
    CHECK_FALSE(scope.cancel("again"));
    CHECK(scope.why()->reason() == std::string_view("its scope was cancelled"));
    CHECK(scope.why()->asked_by() == current().id());
  });
}

TEST_CASE("cancel_scope::call() ends at the first switchpoint if the scope was cancelled before",
          "[scope]") {
  run([] {
    cancel_scope scope;
    scope.cancel("before");
    bool started = false, went_on = false;
    CHECK_FALSE(scope.call([&] {
      started = true;
      snooze();
      went_on = true;
    }));
    CHECK(started);
    CHECK_FALSE(went_on);
  });
}

TEST_CASE("cancel_scope::cancel() ends calls in many fibers, on other threads too", "[scope]") {
  run([] {
    cancel_scope scope;
    testing::idle_thread worker;
    int ends = 0;
    {
      group callers;
      for (int i = 0; i < 10; ++i) {
        callers.spin([&] { ends += scope.call([] { sleep(); }) ? 0 : 1; });
      }
      auto abroad = worker.thread.spin([&] { return !scope.call([] { sleep(); }); });
      sleep_for(2ms);
      scope.cancel();
      callers.await_all();
      CHECK(abroad.await());
    }
    CHECK(ends == 10);
  });
}

TEST_CASE("cancel_scope: cancelled tells its scope from others and from the end of the fiber",
          "[scope]") {
  run([] {
    cancel_scope outer, inner;
    bool was_outer = false, was_inner = true;
    auto ends = spin([&] { outer.cancel(); });
    CHECK_FALSE(outer.call([&] {
      inner.call([&] {
        try {
          sleep();
        } catch (const cancelled& error) {
          was_outer = outer.caused(error);
          was_inner = inner.caused(error);
          throw;
        }
      });
    }));
    CHECK(was_outer);
    CHECK_FALSE(was_inner);
    auto whole = spin([&] {
      try {
        inner.call([] { sleep(); });
      } catch (const cancelled& error) {
        was_inner = inner.caused(error);
        throw;
      }
    });
    snooze();
    whole.cancel();
    CHECK_THROWS_AS(whole.await(), fiber_cancelled);
    CHECK_FALSE(was_inner);
  });
}

TEST_CASE("cancel_scope::cancel() works from another thread, before or during the call",
          "[scope]") {
  run([] {
    const auto rounds = testing::scaled(20'000, 500);
    for (std::size_t i = 0; i < rounds; ++i) {
      std::optional<cancel_scope> scope(std::in_place);
      std::jthread remote([&target = *scope] { target.cancel("from afar"); });
      const bool in_time = scope->call([&] {
        if (i % 2 == 0) sleep();
      });
      CHECK_FALSE((i % 2 == 0 && in_time));
      remote.join();
    }
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("cancel_scope::cancel(): the first of several callers sets the reason", "[scope]") {
  run([] {
    const auto rounds = testing::scaled(2'000, 100);
    for (std::size_t i = 0; i < rounds; ++i) {
      cancel_scope scope;
      std::atomic<int> firsts{0};
      std::atomic<const char*> accepted{nullptr};
      const auto try_to = [&](const char* reason) {
        if (!scope.cancel(reason)) return;
        ++firsts;
        accepted = reason;
      };
      std::thread first([&] { try_to("one"); }), two([&] { try_to("two"); });
      const char* reason = nullptr;
      scope.call([&] {
        try {
          sleep();
        } catch (const cancelled& error) {
          reason = error.reason();
          throw;
        }
      });
      first.join();
      two.join();
      REQUIRE(firsts == 1);
      REQUIRE(reason == accepted.load());
    }
  });
}

TEST_CASE("cancel_scope::cancel() reaches a fiber that is visiting another thread", "[scope]") {
  run([] {
    testing::idle_thread worker;
    cancel_scope scope;
    std::atomic<bool> runs{false};
    auto traveller = spin([&] {
      return !scope.call([&] {
        portal away(worker.thread);
        runs = true;
        sleep();
      });
    });
    while (!runs) sleep_for(100us);
    scope.cancel();
    CHECK(traveller.await());
  });
}
