// SPDX-License-Identifier: MIT
// Groups and their ends: who is waited for, who is ended, and who is told of a failure.
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::fail_when_cancelled;
using testing::first_error;
using testing::note;
using testing::second_error;
using testing::words;

TEST_CASE("group::spin() works from the group's own fibers, but not once the group ends",
          "[group]") {
  run([] {
    bool early = false;
    bool late = false;
    bool refused = false;
    {
      group voices;
      voices.spin([&] {
        voices.spin([&] { early = true; });
        try {
          sleep();
        } catch (const cancelled&) {
          try {
            voices.spin([&] { late = true; });
          } catch (const cancelled&) {
            refused = true;
          }
        }
      });
      snooze();
      snooze();
    }
    CHECK(early);
    CHECK(refused);
    CHECK(!late);
  });
}

TEST_CASE("group::await_all() waits for all of the group's fibers", "[group]") {
  run([] {
    int sum = 0;
    group voices;
    for (int i = 1; i <= 100; ++i) {
      voices.spin([&sum, i] {
        sleep_for(std::chrono::microseconds(i * 10));
        sum += i;
      });
    }
    CHECK(voices.size() == 100);
    voices.await_all();
    CHECK(sum == 5050);
    CHECK(voices.size() == 0);
    voices.await_all();
  });
}

TEST_CASE("group::await_all() on an empty group returns, or throws a pending interruption",
          "[group]") {
  run([] {
    group voices;
    voices.await_all();
    current().raise(first_error());
    CHECK_THROWS_AS(voices.await_all(), first_error);
  });
}

TEST_CASE("group::await_all() cancels the rest at the first failure, and rethrows it unchanged",
          "[group]") {
  run([] {
    words trace;
    group voices;
    const first_error error;
    const auto original = std::make_exception_ptr(error);
    auto fails = voices.spin([&] {
      snooze();
      std::rethrow_exception(original);
    });
    auto done = voices.spin([] { return 2; });
    auto rest = voices.spin([&] {
      const note last(trace, "rest");
      sleep_for(1h);
    });
    try {
      voices.await_all();
      trace.emplace_back("nothing thrown");
    } catch (...) {
      CHECK(std::current_exception() == original);
      trace.emplace_back("told");
    }
    CHECK(trace == words{"rest", "told"});
    CHECK(fails.state() == fiber_state::dead);
    CHECK(rest.state() == fiber_state::dead);
    CHECK(done.await() == 2);
    CHECK_THROWS_AS(rest.await(), fiber_cancelled);
    snooze();
  });
}

TEST_CASE("group: a failure interrupts the owner at any switchpoint, and only once", "[group]") {
  run([] {
    group voices;
    bool ended = false;
    voices.spin([] {
      snooze();
      throw first_error();
    });
    voices.spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        ended = true;
        throw;
      }
    });
    CHECK_THROWS_AS(sleep(), first_error);
    voices.await_all();
    CHECK(ended);
  });
}

TEST_CASE("group can be used again after await_all() has thrown its failure", "[group]") {
  run([] {
    group voices;
    for (int round = 0; round < 3; ++round) {
      bool ended = false;
      voices.spin([] {
        snooze();
        throw first_error();
      });
      voices.spin([&] {
        try {
          sleep_for(5ms);
        } catch (const cancelled&) {
          ended = true;
          throw;
        }
      });
      CHECK_THROWS_AS(voices.await_all(), first_error);
      CHECK(ended);
    }
    int count = 0;
    voices.spin([&] { ++count; });
    voices.await_all();
    CHECK(count == 1);
  });
}

TEST_CASE("group can be used again after another switchpoint has thrown its failure", "[group]") {
  run([] {
    group voices;
    for (int round = 0; round < 3; ++round) {
      bool ended = false;
      voices.spin([] {
        snooze();
        throw first_error();
      });
      voices.spin([&] {
        try {
          sleep_for(5ms);
        } catch (const cancelled&) {
          ended = true;
          throw;
        }
      });
      CHECK_THROWS_AS(sleep(), first_error);
      voices.await_all();
      CHECK(ended);
    }
  });
}

TEST_CASE("group: the destructor ends the fibers, and borrowed locals stay valid until then",
          "[group]") {
  run([] {
    words trace;
    {
      std::vector<int> numbers(100, 1);
      group voices;
      for (int i = 0; i < 3; ++i) {
        voices.spin([&] {
          try {
            sleep();
          } catch (const cancelled&) {
            sleep_for(1ms);
            numbers.push_back(static_cast<int>(numbers.size()));
            trace.push_back(std::to_string(numbers.size()));
            throw;
          }
        });
      }
      snooze();
    }
    trace.emplace_back("left");
    CHECK(trace == words{"101", "102", "103", "left"});
  });
}

TEST_CASE("group: the destructor ends the fibers when an exception leaves its scope", "[group]") {
  run([] {
    words trace;
    const auto leave = [&] {
      group voices;
      voices.spin([&] {
        const note last(trace, "ended");
        sleep();
      });
      snooze();
      throw first_error();
    };
    CHECK_THROWS_AS(leave(), first_error);
    CHECK(trace == words{"ended"});
  });
}

TEST_CASE("group: the destructor waits for its fibers in spite of interruptions", "[group]") {
  run([] {
    bool cleaned = false;
    auto owner = spin([&] {
      {
        group voices;
        voices.spin([&] {
          try {
            sleep();
          } catch (const cancelled&) {
            sleep_for(3ms);
            cleaned = true;
          }
        });
        snooze();
      }
      CHECK(cleaned);
      snooze();
    });
    sleep_for(1ms);
    CHECK(owner.raise(second_error()));
    CHECK_THROWS_AS(owner.await(), second_error);
    CHECK(cleaned);
  });
}

TEST_CASE("group: a failure found by the destructor is thrown at the owner's next switchpoint",
          "[group]") {
  run([] {
    {
      group voices;
      voices.spin(fail_when_cancelled);
      snooze();
    }
    CHECK_THROWS_AS(snooze(), first_error);
    snooze();
  });
}

TEST_CASE("group::cancel() cancels the fibers, not the owner; more can be spun", "[group]") {
  run([] {
    group voices;
    int ends = 0;
    for (int i = 0; i < 3; ++i) {
      voices.spin([&] {
        try {
          sleep();
        } catch (const cancelled& error) {
          if (std::string(error.reason()) == "the piece is over") ++ends;
          throw;
        }
      });
    }
    snooze();
    voices.cancel("the piece is over");
    CHECK(ends == 0);
    snooze();
    CHECK(ends == 3);
    voices.await_all();
    bool respawned = false;
    voices.spin([&] { respawned = true; });
    voices.await_all();
    CHECK(respawned);
  });
}

TEST_CASE("group::await_all() throws unless the owner calls it", "[group]") {
  run([] {
    group voices;
    auto f = spin([&] { CHECK_THROWS_AS(voices.await_all(), std::logic_error); });
    f.await();
  });
}

TEST_CASE("group::await_all() does not wait for transient fibers; the destructor does", "[group]") {
  run([] {
    bool ended = false;
    {
      group voices;
      voices.spin({.transient = true}, [&] {
        try {
          sleep();
        } catch (const cancelled&) {
          ended = true;
          throw;
        }
      });
      voices.spin([] { sleep_for(1ms); });
      voices.await_all();
      CHECK(!ended);
      CHECK(voices.size() == 1);
    }
    CHECK(ended);
  });
}

TEST_CASE("group::await_all() leaves the fibers running when it is interrupted", "[group]") {
  run([] {
    fiber_ref slow;
    auto owner = spin([&] {
      group voices;
      auto voice = voices.spin([] { return suspend<int>(); });
      slow = voice;
      CHECK_THROWS_AS(voices.await_all(), second_error);
      CHECK(voice.state() == fiber_state::waiting);
      voices.await_all();
      return voice.await();
    });
    snooze();
    snooze();
    CHECK(owner.raise(second_error()));
    snooze();
    slow.schedule(4);
    CHECK(owner.await() == 4);
  });
}

TEST_CASE("group: a nested group ends with the fiber that owns it", "[group]") {
  run([] {
    words trace;
    {
      group outer;
      outer.spin([&] {
        group inner;
        inner.spin([&] {
          const note last(trace, "inner");
          sleep();
        });
        const note last(trace, "outer");
        inner.await_all();
      });
      sleep_for(1ms);
    }
    CHECK(trace == words{"outer", "inner"});
  });
}

TEST_CASE("group: one of its own fibers, or a child of one, may destroy it", "[group]") {
  for (const bool by_grandchild : {false, true}) {
    run([&] {
      auto owner = std::make_shared<group>();
      bool other_ended = false;
      owner->spin([&other_ended] {
        try {
          sleep();
        } catch (const cancelled&) {
          other_ended = true;
          throw;
        }
      });
      auto ending = owner->spin([&other_ended, by_grandchild, owner]() mutable {
        auto end = [&other_ended, last = std::move(owner)]() mutable {
          last.reset();
          CHECK(other_ended);
        };
        snooze();
        if (by_grandchild) {
          spin(std::move(end)).await();
        } else {
          auto victim = std::move(end);
          victim();
        }
      });
      owner.reset();
      if (by_grandchild) {
        CHECK_THROWS_AS(ending.await(), fiber_cancelled);
      } else {
        CHECK_NOTHROW(ending.await());  // it came to its end before it could be told
      }
    });
  }
}

TEST_CASE("group: the destructor ends a thousand endlessly sleeping fibers at once", "[group]") {
  run([] {
    constexpr int fibers = 1'000;
    int rounds = 0;
    int ends = 0;
    int rounds_at_end = 0;
    {
      group voices;
      for (int i = 0; i < fibers; ++i) {
        voices.spin([&] {
          try {
            for (;;) {
              sleep_for(10ms);
              ++rounds;
            }
          } catch (const cancelled&) {
            ++ends;
            throw;
          }
        });
      }
      while (rounds < fibers) sleep_for(5ms);
      rounds_at_end = rounds;
    }
    CHECK(ends == fibers);
    CHECK(rounds == rounds_at_end);
    suspend();
  });
}
