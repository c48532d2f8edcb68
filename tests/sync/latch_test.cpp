// SPDX-License-Identifier: MIT
// latch.
#include <atomic>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"
#include "sync/forms.hpp"

using namespace motet;
using testing::settle;

TEMPLATE_TEST_CASE("a latch opens at its last step, for all who wait and for later ones", "[latch]",
                   FORMS) {
  run([] {
    typename TestType::latch steps(3);
    std::string order;
    group all;
    for (const char name : {'a', 'b'}) {
      all.spin([&, name] {
        steps.wait();
        order += name;
      });
    }
    settle();
    steps.count_down(2);
    CHECK_FALSE(steps.is_open());
    CHECK_THROWS_AS(steps.count_down(2), std::invalid_argument);
    CHECK_THROWS_AS(steps.count_down(-1), std::invalid_argument);
    settle();
    CHECK(order.empty());
    steps.count_down();
    CHECK(steps.is_open());
    all.await_all();
    CHECK(order == "ab");
    steps.wait();
    steps.count_down(0);
    CHECK_THROWS_AS(steps.count_down(), std::invalid_argument);
    CHECK_THROWS_AS(typename TestType::latch(-1), std::invalid_argument);
    typename TestType::latch(0).wait();
  });
}

TEST_CASE("fibers and plain threads meet at a barrier, and at a latch", "[barrier][latch]") {
  constexpr int parties = 4;
  const int rounds = static_cast<int>(testing::scaled(20'000, testing::under_tsan ? 200 : 2'000));
  barrier line(parties);
  latch over(parties);
  std::atomic<int> lasts{0};
  std::atomic<int> in_round{0};
  std::atomic<bool> torn{false};
  const auto play = [&] {
    for (int round = 0; round < rounds; ++round) {
      if (in_round.load() / parties != round) torn = true;
      ++in_round;
      if (line.arrive_and_wait()) ++lasts;
      if (line.arrive_and_wait()) ++lasts;
    }
    over.count_down();
  };
  std::vector<std::thread> threads;
  threads.emplace_back(play);
  threads.emplace_back([&] { run(play); });
  run([&] {
    group mine;
    for (int i = 0; i < 2; ++i) mine.spin(play);
    over.wait();
    mine.await_all();
  });
  for (auto& each : threads) each.join();
  CHECK_FALSE(torn);
  CHECK(lasts == 2 * rounds);
}
