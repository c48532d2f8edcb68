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

TEMPLATE_TEST_CASE("latch opens at its last step, for all waiters and later ones", "[latch]",
                   FORMS) {
  run([] {
    typename TestType::latch steps(3);
    std::string order;
    group waiters;
    for (const char name : {'a', 'b'}) {
      waiters.spin([&, name] {
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
    waiters.await_all();
    CHECK(order == "ab");
    steps.wait();
    steps.count_down(0);
    CHECK_THROWS_AS(steps.count_down(), std::invalid_argument);
    CHECK_THROWS_AS(typename TestType::latch(-1), std::invalid_argument);
    typename TestType::latch(0).wait();
  });
}

TEST_CASE("barrier and latch work for fibers and plain threads together", "[barrier][latch]") {
  constexpr int parties = 4;
  const int rounds = static_cast<int>(testing::scaled(20'000, testing::under_tsan ? 200 : 2'000));
  barrier line(parties);
  latch finish(parties);
  std::atomic<int> lasts{0};
  std::atomic<int> in_round{0};
  std::atomic<bool> inconsistent{false};
  const auto play = [&] {
    for (int round = 0; round < rounds; ++round) {
      if (in_round.load() / parties != round) inconsistent = true;
      ++in_round;
      if (line.arrive_and_wait()) ++lasts;
      if (line.arrive_and_wait()) ++lasts;
    }
    finish.count_down();
  };
  std::vector<std::thread> threads;
  threads.emplace_back(play);
  threads.emplace_back([&] { run(play); });
  run([&] {
    group members;
    for (int i = 0; i < 2; ++i) members.spin(play);
    finish.wait();
    members.await_all();
  });
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(inconsistent);
  CHECK(lasts == 2 * rounds);
}
