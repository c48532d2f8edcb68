// SPDX-License-Identifier: MIT
// once.
#include <chrono>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::settle;
using testing::until_waiting;

TEMPLATE_TEST_CASE("once::call() runs the callable once, and callers wait meanwhile", "[once]",
                   FORMS) {
  run([] {
    typename TestType::once set_up;
    event finish;
    int calls = 0;
    int returns = 0;
    group callers;
    for (int i = 0; i < 3; ++i) {
      callers.spin([&] {
        set_up.call([&] {
          ++calls;
          finish.wait();
        });
        ++returns;
      });
    }
    settle();
    CHECK(returns == 0);
    CHECK_FALSE(set_up.is_done());
    finish.set();
    callers.await_all();
    CHECK(calls == 1);
    CHECK(returns == 3);
    CHECK(set_up.is_done());
  });
}

TEMPLATE_TEST_CASE("once::call(): if it fails or is interrupted, the next caller runs it", "[once]",
                   FORMS) {
  run([] {
    typename TestType::once set_up;
    std::string calls;
    auto fails = spin([&] {
      set_up.call([&] {
        calls += 'f';
        snooze();
        throw oops();
      });
    });
    auto victim = spin([&] {
      set_up.call([&] {
        calls += 'i';
        sleep();
      });
    });
    auto does = spin([&] { set_up.call([&] { calls += 'd'; }); });
    CHECK_THROWS_AS(fails.await(), oops);
    until_waiting(victim);
    victim.cancel();
    does.await();
    CHECK(calls == "fid");
    CHECK_THROWS_AS(typename TestType::once().call([] { throw oops(); }), oops);
    typename TestType::once again;
    CHECK_THROWS_AS(again.call([&] { again.call([] {}); }), std::logic_error);
  });
}
