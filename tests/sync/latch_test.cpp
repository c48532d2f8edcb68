// SPDX-License-Identifier: MIT
// Latches, barriers, and what is done once.
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "support.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::settle;
using testing::until_waiting;

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

TEMPLATE_TEST_CASE("a barrier holds its parties round after round", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(3);
    std::string order;
    int lasts = 0;
    group all;
    for (const char name : {'a', 'b', 'c'}) {
      all.spin([&, name] {
        for (int round = 0; round < 3; ++round) {
          order += name;
          if (line.arrive_and_wait()) ++lasts;
        }
      });
    }
    all.await_all();
    CHECK(order == "abccabbca");  // the last one goes on without waiting
    CHECK(lasts == 3);
    CHECK_THROWS_AS(typename TestType::barrier(0), std::invalid_argument);
  });
}

TEMPLATE_TEST_CASE("an interrupted arrival at a barrier has not happened", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(2);
    auto gone = spin([&] { line.arrive_and_wait(); });
    until_waiting(gone);
    gone.raise(oops());
    CHECK_THROWS_AS(gone.await(), oops);
    bool passed = false;
    auto first = spin([&] {
      line.arrive_and_wait();
      passed = true;
    });
    settle();
    CHECK_FALSE(passed);
    CHECK(line.arrive_and_wait());
    first.await();
    CHECK(passed);
  });
}

TEMPLATE_TEST_CASE("an arrival that its round needed stands, though it was interrupted",
                   "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(2);
    bool passed = false;
    auto interrupted = spin([&] {
      CHECK_FALSE(line.arrive_and_wait());
      passed = true;
      snooze();  // throws
    });
    until_waiting(interrupted);
    interrupted.raise(oops());
    CHECK(line.arrive_and_wait());  // before the other fiber has run
    CHECK_THROWS_AS(interrupted.await(), oops);
    CHECK(passed);
  });
}

TEMPLATE_TEST_CASE("a party may leave a barrier for good", "[barrier]", FORMS) {
  run([] {
    typename TestType::barrier line(3);
    group all;
    int rounds = 0;
    for (int i = 0; i < 2; ++i) {
      all.spin([&] {
        for (int round = 0; round < 2; ++round) {
          if (line.arrive_and_wait()) ++rounds;
        }
      });
    }
    settle();
    CHECK(rounds == 0);
    line.arrive_and_drop();
    all.await_all();
    CHECK(rounds == 1);  // the first was ended by the one that left
    line.arrive_and_drop();
    CHECK(line.arrive_and_wait());  // alone
    line.arrive_and_drop();
    CHECK_THROWS_AS(line.arrive_and_wait(), std::logic_error);
    CHECK_THROWS_AS(line.arrive_and_drop(), std::logic_error);
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
