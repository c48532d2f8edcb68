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

TEST_CASE("a scope that is cancelled ends its call and nothing else", "[scope]") {
  run([] {
    cancel_scope scope;
    auto other = spin([&] { CHECK(scope.cancel("the user hung up")); });
    bool inner_told = false;
    const bool ended = !scope.call([&] {
      try {
        sleep();
      } catch (const cancelled& told) {
        inner_told = scope.caused(told);
        CHECK(told.reason() == std::string_view("the user hung up"));
        CHECK(told.asked_by() == other.id());
        throw;
      }
    });
    CHECK(ended);
    CHECK(inner_told);
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("a call that returns has its value, though its scope was cancelled", "[scope]") {
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

TEST_CASE("a scope that was cancelled before ends a call at its first switchpoint", "[scope]") {
  run([] {
    cancel_scope scope;
    scope.cancel("before");
    bool begun = false, went_on = false;
    CHECK_FALSE(scope.call([&] {
      begun = true;
      snooze();
      went_on = true;
    }));
    CHECK(begun);
    CHECK_FALSE(went_on);
  });
}

TEST_CASE("one scope ends calls in many fibers, on other threads, too", "[scope]") {
  run([] {
    cancel_scope scope;
    testing::idle_thread there;
    int ended = 0;
    {
      group all;
      for (int i = 0; i < 10; ++i) {
        all.spin([&] { ended += scope.call([] { sleep(); }) ? 0 : 1; });
      }
      auto abroad = there.itself.spin([&] { return !scope.call([] { sleep(); }); });
      sleep_for(2ms);
      scope.cancel();
      all.await_all();
      CHECK(abroad.await());
    }
    CHECK(ended == 10);
  });
}

TEST_CASE("a scope is told apart from others, and from the end of its fiber", "[scope]") {
  run([] {
    cancel_scope outer, inner;
    bool was_outer = false, was_inner = true;
    auto ends = spin([&] { outer.cancel(); });
    CHECK_FALSE(outer.call([&] {
      inner.call([&] {
        try {
          sleep();
        } catch (const cancelled& told) {
          was_outer = outer.caused(told);
          was_inner = inner.caused(told);
          throw;
        }
      });
    }));
    CHECK(was_outer);
    CHECK_FALSE(was_inner);
    auto whole = spin([&] {
      try {
        inner.call([] { sleep(); });
      } catch (const cancelled& told) {
        was_inner = inner.caused(told);
        throw;
      }
    });
    snooze();
    whole.cancel();
    CHECK_THROWS_AS(whole.await(), fiber_cancelled);
    CHECK_FALSE(was_inner);
  });
}

TEST_CASE("a scope that is cancelled on another thread ends its call, whenever it comes",
          "[scope]") {
  run([] {
    const auto rounds = testing::scaled(20'000, 500);
    for (std::size_t i = 0; i < rounds; ++i) {
      std::optional<cancel_scope> scope(std::in_place);
      std::jthread other([&canceled = *scope] { canceled.cancel("from afar"); });
      const bool in_time = scope->call([&] {
        if (i % 2 == 0) sleep();
      });
      CHECK_FALSE((i % 2 == 0 && in_time));
      other.join();
    }
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("of several that cancel a scope one is the first, and its reason is told", "[scope]") {
  run([] {
    const auto rounds = testing::scaled(2'000, 100);
    for (std::size_t i = 0; i < rounds; ++i) {
      cancel_scope scope;
      std::atomic<int> firsts{0};
      std::atomic<const char*> given{nullptr};
      const auto try_to = [&](const char* why) {
        if (!scope.cancel(why)) return;
        ++firsts;
        given = why;
      };
      std::thread one([&] { try_to("one"); }), two([&] { try_to("two"); });
      const char* told = nullptr;
      scope.call([&] {
        try {
          sleep();
        } catch (const cancelled& ended) {
          told = ended.reason();
          throw;
        }
      });
      one.join();
      two.join();
      REQUIRE(firsts == 1);
      REQUIRE(told == given.load());
    }
  });
}

TEST_CASE("a scope of a fiber that is away is cancelled at home", "[scope]") {
  run([] {
    testing::idle_thread there;
    cancel_scope scope;
    std::atomic<bool> runs{false};
    auto traveller = spin([&] {
      return !scope.call([&] {
        portal away(there.itself);
        runs = true;
        sleep();
      });
    });
    while (!runs) sleep_for(100us);
    scope.cancel();
    CHECK(traveller.await());
  });
}
