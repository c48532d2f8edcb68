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

TEMPLATE_TEST_CASE("once is called once, whoever asks meanwhile waits", "[once]", FORMS) {
  run([] {
    typename TestType::once set_up;
    int calls = 0;
    int passed = 0;
    group all;
    for (int i = 0; i < 3; ++i) {
      all.spin([&] {
        set_up.call([&] {
          ++calls;
          sleep_for(1ms);
        });
        ++passed;
      });
    }
    settle();
    CHECK(passed == 0);
    CHECK_FALSE(set_up.is_done());
    all.await_all();
    CHECK(calls == 1);
    CHECK(passed == 3);
    CHECK(set_up.is_done());
  });
}

TEMPLATE_TEST_CASE("where once fails or is interrupted, the next one calls", "[once]", FORMS) {
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
    auto interrupted = spin([&] {
      set_up.call([&] {
        calls += 'i';
        sleep();
      });
    });
    auto does = spin([&] { set_up.call([&] { calls += 'd'; }); });
    CHECK_THROWS_AS(fails.await(), oops);
    until_waiting(interrupted);
    interrupted.cancel();
    does.await();
    CHECK(calls == "fid");
    CHECK_THROWS_AS(typename TestType::once().call([] { throw oops(); }), oops);
    typename TestType::once again;
    CHECK_THROWS_AS(again.call([&] { again.call([] {}); }), std::logic_error);
  });
}
