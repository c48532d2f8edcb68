// SPDX-License-Identifier: MIT
// Promises: kept once, or failed, dropped, cancelled.
#include <future>
#include <motet/motet.hpp>
#include <motet/sync/future.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "settle.hpp"

using namespace motet;
using testing::settle;

TEST_CASE("a promise is kept once", "[future]") {
  run([] {
    promise<std::string> told;
    const future<std::string> seen = told.get_future();
    CHECK_FALSE(seen.ready());
    std::string order;
    group waiting;
    for (int i = 0; i < 3; ++i) waiting.spin([&] { order += seen.get(); });
    settle();
    CHECK(told.set_value("x"));
    CHECK_FALSE(told.set_value("y"));
    CHECK_FALSE(told.set_exception(std::make_exception_ptr(std::runtime_error("late"))));
    waiting.await_all();
    CHECK(order == "xxx");
    CHECK(future<std::string>(seen).get() == "x");
    CHECK_THROWS_AS(seen.get(), std::logic_error);  // taken by the line before
  });
}

TEST_CASE("a promise can fail, be dropped, be cancelled, or be empty", "[future]") {
  run([] {
    promise<int> failing;
    failing.set_exception(std::make_exception_ptr(std::out_of_range("too far")));
    CHECK_THROWS_AS(failing.get_future().get(), std::out_of_range);

    std::optional<promise<int>> dropped(std::in_place);
    const future<int> seen = dropped->get_future();
    dropped.reset();
    CHECK_THROWS_AS(seen.get(), std::future_error);

    promise<int> given_up;
    auto maker = spin([&] {
      try {
        sleep();
      } catch (...) {
        given_up.set_exception(std::current_exception());
        throw;
      }
    });
    snooze();
    maker.cancel("enough");
    CHECK_THROWS_AS(given_up.get_future().get(), fiber_cancelled);

    promise<void> nothing;
    promise<void> moved(std::move(nothing));
    CHECK_THROWS_AS(nothing.set_value(), std::logic_error);
    CHECK(moved.set_value());
    moved.get_future().get();
    CHECK_THROWS_AS(future<int>().get(), std::logic_error);

    struct sharp {
      explicit sharp(int n) {
        if (n > 0) throw std::runtime_error("cut");
      }
    };
    promise<sharp> cut;
    CHECK_THROWS_AS(cut.set_value(1), std::runtime_error);
    CHECK_THROWS_AS(cut.get_future().get(), std::runtime_error);
    maker.cancel("it has ended");
  });
}

TEST_CASE("a future of a reference refers to the object itself", "[future]") {
  run([] {
    int object = 1;
    promise<int&> made;
    const future<int&> told = made.get_future();
    made.set_value(object);
    CHECK(&told.get() == &object);
    CHECK(&future<int&>(told).get() == &object);
    CHECK_THROWS_AS(told.get(), std::logic_error);
    struct derived : std::string {
    } text;
    promise<const std::string&> of_base;
    of_base.set_value(text);
    CHECK(&of_base.get_future().get() == &text);
  });
}
