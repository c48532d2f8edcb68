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

TEST_CASE("promise can be fulfilled once", "[future]") {
  run([] {
    promise<std::string> answer;
    const future<std::string> shared_answer = answer.get_future();
    CHECK_FALSE(shared_answer.ready());
    std::string order;
    group waiters;
    for (int i = 0; i < 3; ++i) waiters.spin([&] { order += shared_answer.get(); });
    settle();
    CHECK(answer.set_value("x"));
    CHECK_FALSE(answer.set_value("y"));
    CHECK_FALSE(answer.set_exception(std::make_exception_ptr(std::runtime_error("late"))));
    waiters.await_all();
    CHECK(order == "xxx");
    CHECK(future<std::string>(shared_answer).get() == "x");
    CHECK_THROWS_AS(shared_answer.get(), std::logic_error);  // taken by the line before
  });
}

TEST_CASE("promise can fail, be dropped, be cancelled or be empty", "[future]") {
  run([] {
    promise<int> failing;
    failing.set_exception(std::make_exception_ptr(std::out_of_range("too far")));
    CHECK_THROWS_AS(failing.get_future().get(), std::out_of_range);

    std::optional<promise<int>> dropped(std::in_place);
    const future<int> orphan = dropped->get_future();
    dropped.reset();
    CHECK_THROWS_AS(orphan.get(), std::future_error);

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

    promise<void> void_promise;
    promise<void> target(std::move(void_promise));
    CHECK_THROWS_AS(void_promise.set_value(), std::logic_error);
    CHECK(target.set_value());
    target.get_future().get();
    CHECK_THROWS_AS(future<int>().get(), std::logic_error);

    struct sharp {
      explicit sharp(int n) {
        if (n > 0) throw std::runtime_error("cut");
      }
    };
    promise<sharp> assigned;
    CHECK_THROWS_AS(assigned.set_value(1), std::runtime_error);
    CHECK_THROWS_AS(assigned.get_future().get(), std::runtime_error);
    maker.cancel("it has ended");
  });
}

TEST_CASE("future of a reference refers to the object itself", "[future]") {
  run([] {
    int object = 1;
    promise<int&> source;
    const future<int&> view = source.get_future();
    source.set_value(object);
    CHECK(&view.get() == &object);
    CHECK(&future<int&>(view).get() == &object);
    CHECK_THROWS_AS(view.get(), std::logic_error);
    struct derived : std::string {
    } text;
    promise<const std::string&> of_base;
    of_base.set_value(text);
    CHECK(&of_base.get_future().get() == &text);
  });
}
