// SPDX-License-Identifier: MIT
// Parents and children, groups, results, and the beginning and end of a runtime.
#include <array>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

struct first_error : std::runtime_error {
  first_error() : std::runtime_error("first") {}
};

struct second_error : std::runtime_error {
  second_error() : std::runtime_error("second") {}
};

/// Notes a word when it is destroyed, unless it has been moved from.
struct note {
  note(words& to, std::string text) : trace(&to), word(std::move(text)) {}
  note(note&& other) noexcept
      : trace(std::exchange(other.trace, nullptr)), word(std::move(other.word)) {}
  note& operator=(note&&) = delete;
  ~note() {
    if (trace != nullptr) trace->push_back(word);
  }
  words* trace;
  std::string word;
};

/// Waits to be cancelled and fails then.
void fail_when_cancelled() {
  try {
    sleep();
  } catch (const cancelled&) {
    throw first_error();
  }
}

/// Keeps count of itself.
struct counted {
  explicit counted(int& of) : alive(&of) { ++*alive; }
  counted(counted&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
  counted& operator=(counted&&) = delete;
  ~counted() {
    if (alive != nullptr) --*alive;
  }
  int* alive;
};

struct alignas(64) aligned {
  int value = 5;
};

}  // namespace

TEST_CASE("a fiber is a child of the one that spun it, until it is dead", "[family]") {
  run([] {
    CHECK(!current().parent());
    auto parent = spin([] {
      const fiber_ref me = current();
      auto a = spin([] { sleep_for(1ms); });
      group more;
      auto b = more.spin([] { suspend(); });
      CHECK(a.parent() == me);
      CHECK(b.parent() == me);
      CHECK(me.children().size() == 2);
      a.await();
      CHECK(me.children() == std::vector<fiber_ref>{b});
      b.schedule();
      b.await();
      CHECK(me.children().empty());
      CHECK(a.parent() == me);
    });
    CHECK(parent.parent() == current());
    CHECK(current().children() == std::vector<fiber_ref>{parent});
    parent.await();
    CHECK(parent.children().empty());
  });
}

TEST_CASE("children are listed oldest first", "[family]") {
  run([] {
    std::vector<fiber_ref> spun;
    for (int i = 0; i < 5; ++i) spun.push_back(spin([] { sleep(); }));
    CHECK(current().children() == spun);
  });
}

TEST_CASE("a parent is dead only after its children, which it cancels when its body is left",
          "[family]") {
  run([] {
    words trace;
    std::optional<fiber_ref> child;
    auto parent = spin([&] {
      const note local(trace, "locals");
      child = spin([&] {
        const note last(trace, "child");
        sleep();
      });
      snooze();
      return 1;
    });
    CHECK(parent.await() == 1);
    CHECK(child->state() == fiber_state::dead);
    CHECK(trace == words{"locals", "child"});
    CHECK_THROWS_AS(child->await(), fiber_cancelled);
  });
}

TEST_CASE("the leaves of a family end first, and captures after the children", "[family]") {
  run([] {
    words trace;
    auto root = spin([&, last = note(trace, "root's capture")] {
      spin([&, last = note(trace, "child's capture")] {
        spin([&, last = note(trace, "leaf's capture")] {
          const note local(trace, "leaf");
          sleep();
        });
        const note local(trace, "child");
        sleep();
      });
      const note local(trace, "root");
      sleep();
    });
    for (int i = 0; i < 3; ++i) snooze();
    root.cancel();
    CHECK_THROWS_AS(root.await(), fiber_cancelled);
    CHECK(trace ==
          words{"root", "child", "leaf", "leaf's capture", "child's capture", "root's capture"});
  });
}

TEST_CASE("a stopped parent leaves its body first, then its children theirs, oldest first",
          "[family]") {
  run([] {
    words trace;
    auto parent = spin([&] {
      for (const char* name : {"c1", "c2"}) {
        spin([&trace, name] {
          const note last(trace, name);
          sleep();
        });
      }
      const note last(trace, "p");
      sleep();
    });
    snooze();
    snooze();
    parent.stop();
    parent.await();
    CHECK(trace == words{"p", "c1", "c2"});
  });
}

TEST_CASE("a child that blocks while it is ended is waited for", "[family]") {
  run([] {
    bool cleaned = false;
    auto parent = spin([&] {
      spin([&] {
        try {
          sleep();
        } catch (const cancelled&) {
          sleep_for(3ms);
          cleaned = true;
          throw;
        }
      });
      snooze();
    });
    parent.await();
    CHECK(cleaned);
  });
}

TEST_CASE("a failure reaches the parent at its next switchpoint; the siblings live on",
          "[failure]") {
  run([] {
    words trace;
    auto parent = spin([&] {
      spin([] {
        sleep_for(2ms);
        throw first_error();
      });
      auto sibling = spin([&] {
        suspend();
        trace.emplace_back("sibling");
        return 7;
      });
      const auto start = clock::now();
      try {
        sleep_for(1h);
      } catch (const first_error&) {
        trace.emplace_back("told");
      }
      CHECK(clock::now() - start < 1h);
      sibling.schedule();
      return sibling.await();
    });
    CHECK(parent.await() == 7);
    CHECK(trace == words{"told", "sibling"});
  });
}

TEST_CASE("the parent is told when the failed fiber's own children have ended", "[failure]") {
  run([] {
    words trace;
    auto parent = spin([&] {
      spin([&] {
        spin([&] {
          try {
            sleep();
          } catch (const cancelled&) {
            sleep_for(2ms);
            trace.emplace_back("grandchild");
            throw;
          }
        });
        snooze();
        throw first_error();
      });
      CHECK_THROWS_AS(sleep(), first_error);
      trace.emplace_back("told");
    });
    parent.await();
    CHECK(trace == words{"grandchild", "told"});
  });
}

TEST_CASE("a failure that nobody catches climbs generation by generation", "[failure]") {
  run([] {
    std::vector<int> frames;
    spin([&] {
      spin([&] {
        spin([] { throw first_error(); });
        try {
          sleep();
        } catch (const first_error&) {
          frames.push_back(2);
          throw;
        }
      });
      try {
        sleep();
      } catch (const first_error&) {
        frames.push_back(3);
        throw;
      }
    });
    bool told = false;
    for (int i = 0; i < 6 && !told; ++i) {
      try {
        snooze();
      } catch (const first_error&) {
        told = true;
      }
    }
    CHECK(told);
    CHECK(frames == std::vector<int>{2, 3});
  });
}

TEST_CASE("an await may be interrupted by another child's failure", "[failure]") {
  run([] {
    auto slow = spin([] {
      sleep_for(3ms);
      return 1;
    });
    spin([] { throw first_error(); });
    CHECK_THROWS_AS(slow.await(), first_error);
    CHECK(slow.await() == 1);
  });
}

TEST_CASE("the parent is told of every child's failure, oldest first", "[failure]") {
  run([] {
    spin([] { throw first_error(); });
    spin([] { throw second_error(); });
    CHECK_THROWS_AS(sleep(), first_error);
    CHECK_THROWS_AS(snooze(), second_error);
    snooze();
  });
}

TEST_CASE("a failure that an awaiter has claimed does not go to the parent too", "[failure]") {
  run([] {
    auto parent = spin([] {
      auto fails = spin([] {
        snooze();
        snooze();
        throw first_error();
      });
      auto awaiter = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
      sleep_for(2ms);
      awaiter.await();
      snooze();
    });
    parent.await();
  });
}

TEST_CASE("every awaiter gets the failure", "[failure]") {
  run([] {
    int told = 0;
    auto fails = spin([] {
      sleep_for(1ms);
      throw first_error();
    });
    std::vector<fiber<void>> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(spin([&] {
        try {
          fails.await();
        } catch (const first_error&) {
          ++told;
        }
      }));
    }
    for (auto& each : all) each.await();
    CHECK(told == 5);
    CHECK_THROWS_AS(fails.await(), first_error);
  });
}

TEST_CASE("a failure that the parent has claimed by awaiting is told once", "[failure]") {
  run([] {
    auto fails = spin([] { throw first_error(); });
    CHECK_THROWS_AS(fails.await(), first_error);
    snooze();
    sleep_for(1ms);
  });
}

TEST_CASE("a failure whose only awaiter was interrupted first reaches the parent", "[failure]") {
  run([] {
    bool told = false;
    auto parent = spin([&] {
      std::optional<fiber<void>> awaiter;
      auto fails = spin([&] {
        snooze();
        awaiter->raise(second_error());  // the awaiter is interrupted, but has not run yet
        throw first_error();
      });
      awaiter.emplace(spin([&] { CHECK_THROWS_AS(fails.await(), second_error); }));
      try {
        sleep_for(5ms);
        sleep_for(5ms);
      } catch (const first_error&) {
        told = true;
      }
    });
    parent.await();
    CHECK(told);
  });
}

TEST_CASE("a failure whose only awaiter has run out of time reaches the parent", "[failure]") {
  run([] {
    int told = 0;
    auto fails = spin([] {
      sleep_for(2ms);
      throw first_error();
    });
    auto awaiter = spin([&] { move_on_after(1ms, [&] { fails.await(); }); });
    try {
      sleep_for(5ms);
    } catch (const first_error&) {
      ++told;
    }
    CHECK(told == 1);
    awaiter.await();
  });
}

TEST_CASE("a child that fails while its parent ends decides how the parent ended", "[failure]") {
  run([] {
    auto returns = spin([] {
      spin(fail_when_cancelled);
      snooze();
      return 1;
    });
    CHECK_THROWS_AS(returns.await(), first_error);
    auto is_cancelled = spin([] {
      spin(fail_when_cancelled);
      sleep();
    });
    snooze();
    snooze();
    is_cancelled.cancel();
    CHECK_THROWS_AS(is_cancelled.await(), first_error);
  });
}

TEST_CASE("failures of children that nobody can be told of go to on_unhandled", "[failure]") {
  int untold = 0;
  options chosen;
  chosen.on_unhandled = [&](const std::exception_ptr& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error), first_error);
    ++untold;
  };
  run(chosen, [] {
    auto fails_itself = spin([] {
      for (int i = 0; i < 3; ++i) spin(fail_when_cancelled);
      snooze();
      throw second_error();
    });
    CHECK_THROWS_AS(fails_itself.await(), second_error);
    auto returns = spin([] {
      for (int i = 0; i < 3; ++i) spin(fail_when_cancelled);
      snooze();
    });
    CHECK_THROWS_AS(returns.await(), first_error);
  });
  CHECK(untold == 3 + 2);
}

TEST_CASE("a handle that is given another fiber meanwhile does not mislead its awaiter",
          "[await]") {
  run([] {
    auto worker = spin([]() -> std::string {
      sleep_for(5ms);
      throw first_error();
    });
    auto watcher = spin([&] { CHECK_THROWS_AS(worker.await(), first_error); });
    auto taken = spin([] {
      sleep_for(5ms);
      return std::string("mine");
    });
    auto taker = spin([&] { CHECK(std::move(taken).await() == "mine"); });
    snooze();
    snooze();
    worker = spin([] { return std::string("another's"); });
    taken = spin([] { return std::string("another's"); });
    watcher.await();
    taker.await();
  });
}

TEST_CASE("run returns a reference if its body does", "[run]") {
  int local = 1;
  int& same = run([&]() -> int& { return local; });
  CHECK(&same == &local);
}

TEST_CASE("spinning in a fiber whose body has been left throws cancelled and runs nothing",
          "[family]") {
  run([] {
    bool ran = false;
    bool refused = false;
    std::shared_ptr<int> late(new int, [&](int* value) {
      delete value;
      try {
        spin([&] { ran = true; });
      } catch (const cancelled&) {
        refused = true;
      }
    });
    auto f = spin([late = std::move(late)] {});
    f.await();
    CHECK(refused);
    CHECK(!ran);
  });
}

TEST_CASE("a fiber can be spun into its parent's group, but not once the group ends", "[group]") {
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

TEST_CASE("a group waits for all of its fibers", "[group]") {
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

TEST_CASE("awaiting an empty group returns, and delivers what is pending", "[group]") {
  run([] {
    group voices;
    voices.await_all();
    current().raise(first_error());
    CHECK_THROWS_AS(voices.await_all(), first_error);
  });
}

TEST_CASE("the first failure of a group ends the rest and is rethrown unchanged", "[group]") {
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

TEST_CASE("a failure of a group interrupts its owner elsewhere, and is told once", "[group]") {
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

TEST_CASE("a group is used again after its failure was rethrown", "[group]") {
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
    int done = 0;
    voices.spin([&] { ++done; });
    voices.await_all();
    CHECK(done == 1);
  });
}

TEST_CASE("a group is used again after its failure was thrown elsewhere", "[group]") {
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

TEST_CASE("a group ends its fibers when it is left, and borrowed locals stay valid till then",
          "[group]") {
  run([] {
    words trace;
    {
      std::vector<int> borrowed(100, 1);
      group voices;
      for (int i = 0; i < 3; ++i) {
        voices.spin([&] {
          try {
            sleep();
          } catch (const cancelled&) {
            sleep_for(1ms);
            borrowed.push_back(static_cast<int>(borrowed.size()));
            trace.push_back(std::to_string(borrowed.size()));
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

TEST_CASE("a group that is left by an exception ends its fibers too", "[group]") {
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

TEST_CASE("a group that is left is waited for, whatever is raised meanwhile", "[group]") {
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

TEST_CASE("a failure that a group could not tell is thrown at its owner's next switchpoint",
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

TEST_CASE("cancelling a group reaches its fibers, not its owner; more can be spun", "[group]") {
  run([] {
    group voices;
    int ended = 0;
    for (int i = 0; i < 3; ++i) {
      voices.spin([&] {
        try {
          sleep();
        } catch (const cancelled& how) {
          if (std::string(how.reason()) == "the piece is over") ++ended;
          throw;
        }
      });
    }
    snooze();
    voices.cancel("the piece is over");
    CHECK(ended == 0);
    snooze();
    CHECK(ended == 3);
    voices.await_all();
    bool more = false;
    voices.spin([&] { more = true; });
    voices.await_all();
    CHECK(more);
  });
}

TEST_CASE("only its owner may await a group", "[group]") {
  run([] {
    group voices;
    auto f = spin([&] { CHECK_THROWS_AS(voices.await_all(), std::logic_error); });
    f.await();
  });
}

TEST_CASE("await_all does not wait for transient fibers, the group's end does", "[group]") {
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

TEST_CASE("an interrupted await_all leaves its fibers running", "[group]") {
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

TEST_CASE("a group within a fiber of a group ends with it", "[group]") {
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

TEST_CASE("a group may be ended by one of its own fibers, or by a child of one", "[group]") {
  for (const bool by_grandchild : {false, true}) {
    run([&] {
      auto shared = std::make_shared<group>();
      bool other_ended = false;
      shared->spin([&other_ended] {
        try {
          sleep();
        } catch (const cancelled&) {
          other_ended = true;
          throw;
        }
      });
      auto ending = shared->spin([&other_ended, by_grandchild, shared]() mutable {
        auto end = [&other_ended, last = std::move(shared)]() mutable {
          last.reset();
          CHECK(other_ended);
        };
        snooze();
        if (by_grandchild) {
          spin(std::move(end)).await();
        } else {
          auto now = std::move(end);
          now();
        }
      });
      shared.reset();
      if (by_grandchild) {
        CHECK_THROWS_AS(ending.await(), fiber_cancelled);
      } else {
        CHECK_NOTHROW(ending.await());  // it came to its end before it could be told
      }
    });
  }
}

TEST_CASE("a thousand fibers that sleep for ever are ended at once by their group", "[group]") {
  run([] {
    constexpr int fibers = 1'000;
    int rounds = 0;
    int ended = 0;
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
            ++ended;
            throw;
          }
        });
      }
      while (rounds < fibers) sleep_for(5ms);
      rounds_at_end = rounds;
    }
    CHECK(ended == fibers);
    CHECK(rounds == rounds_at_end);
    suspend();
  });
}

TEST_CASE("a result is read as often as one likes, at the same place", "[result]") {
  run([] {
    auto f = spin([] { return std::string("a value of more than a few characters"); });
    const std::string& once = f.await();
    const std::string& again = f.await();
    CHECK(&once == &again);
    CHECK(once == "a value of more than a few characters");
  });
}

TEST_CASE("a result can be taken once; afterwards awaiting it is a logic error", "[result]") {
  run([] {
    auto f = spin([] { return std::make_unique<int>(3); });
    const std::unique_ptr<int> taken = std::move(f).await();
    CHECK(*taken == 3);
    CHECK_THROWS_AS(f.await(), std::logic_error);
    CHECK_THROWS_AS(std::move(f).await(), std::logic_error);
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("results may be large, aligned, move-only or nothing", "[result]") {
  run([] {
    auto many = spin([] {
      std::array<int, 1000> numbers;
      numbers.fill(8);
      return numbers;
    });
    auto one = spin([] { return aligned(); });
    auto pointer = spin([p = std::make_unique<int>(4)]() mutable { return std::move(p); });
    auto nothing = spin([] {});
    auto yes = spin([] { return true; });
    CHECK(many.await()[999] == 8);
    CHECK(one.await().value == 5);
    CHECK(reinterpret_cast<std::uintptr_t>(&one.await()) % 64 == 0);
    CHECK(*pointer.await() == 4);
    nothing.await();
    CHECK(yes.await());
  });
}

TEST_CASE("a result lives as long as a handle, and is destroyed once", "[result]") {
  int alive = 0;
  run([&] {
    auto kept = spin([&] { return counted(alive); });
    kept.await();
    CHECK(alive == 1);
    const fiber_ref other = kept;
    kept = {};
    CHECK(alive == 1);
    spin([&] { return counted(alive); });
    snooze();
    snooze();
    CHECK(alive == 1);
    auto stopped = spin([&]() -> counted { sleep(); });
    snooze();
    stopped.stop(counted(alive));
    CHECK_NOTHROW(stopped.await());
    CHECK(alive == 2);
    auto taken = spin([&] { return counted(alive); });
    {
      const counted mine = std::move(taken).await();
      CHECK(alive == 3);
    }
    CHECK(alive == 2);
  });
  CHECK(alive == 0);
}

TEST_CASE("dropping the handle neither ends a fiber nor waits for it", "[result]") {
  run([] {
    bool over = false;
    {
      auto f = spin([&] {
        sleep_for(1ms);
        over = true;
      });
    }
    CHECK(!over);
    suspend();
    CHECK(over);
  });
}

TEST_CASE("a body may be move-only and larger than a page", "[result]") {
  run([] {
    std::array<char, 8000> big{};
    big[7999] = 'x';
    auto f = spin([big, p = std::make_unique<int>(1)] { return big[7999]; });
    CHECK(f.await() == 'x');
  });
}

TEST_CASE("a stack size that cannot be is refused before anything has happened", "[spin]") {
  run([] {
    CHECK_THROWS_AS(spin({.stack_size = 100}, [] {}), std::invalid_argument);
    CHECK(current().children().empty());
    auto f = spin({.name = "big", .stack_size = 1 << 20}, [] {
      volatile char room[900'000];
      room[0] = 1;
      return static_cast<int>(room[0]);
    });
    CHECK(f.await() == 1);
  });
}

TEST_CASE("run returns what its function returned", "[run]") {
  CHECK(run([] { return 3; }) == 3);
  CHECK(*run([] { return std::make_unique<int>(4); }) == 4);
  run([] {});
}

TEST_CASE("run throws what its function threw, after all fibers have ended", "[run]") {
  words trace;
  CHECK_THROWS_AS(run([&] {
                    spin([&] {
                      const note last(trace, "ended");
                      sleep();
                    });
                    snooze();
                    throw first_error();
                  }),
                  first_error);
  CHECK(trace == words{"ended"});
}

TEST_CASE("run ends sleepers at once; suspend before its end lets them finish", "[run]") {
  words trace;
  const auto sleeper = [&](const char* name) {
    spin([&trace, name] {
      const note last(trace, std::string(name) + " destroyed");
      sleep_for(3ms);
      trace.push_back(std::string(name) + " woke");
    });
  };
  run([&] {
    sleeper("a");
    snooze();
  });
  CHECK(trace == words{"a destroyed"});
  trace.clear();
  run([&] {
    sleeper("b");
    suspend();
  });
  CHECK(trace == words{"b woke", "b destroyed"});
}

TEST_CASE("run throws a failure that its function was not told of", "[run]") {
  CHECK_THROWS_AS(run([] {
                    spin(fail_when_cancelled);
                    snooze();
                  }),
                  first_error);
  CHECK_THROWS_AS(run([] {
                    spin(fail_when_cancelled);
                    snooze();
                    return 1;
                  }),
                  first_error);
}

TEST_CASE("what nobody can be told any more goes to on_unhandled", "[run]") {
  words told;
  options chosen;
  chosen.on_unhandled = [&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      told.emplace_back(e.what());
    }
  };
  CHECK_THROWS_AS(run(chosen,
                      [] {
                        spin(fail_when_cancelled);
                        snooze();
                        throw second_error();
                      }),
                  second_error);
  CHECK(told == words{"first"});
  told.clear();
  CHECK_THROWS_AS(run(chosen,
                      [] {
                        spin(fail_when_cancelled);
                        spin([] {
                          try {
                            sleep();
                          } catch (const cancelled&) {
                            throw second_error();
                          }
                        });
                        snooze();
                      }),
                  first_error);
  CHECK(told == words{"second"});
}

TEST_CASE("a main fiber can be cancelled, too", "[run]") {
  CHECK_THROWS_AS(run([] {
                    spin([main = current()] { main.cancel("no more"); });
                    sleep();
                  }),
                  cancelled);
}

TEST_CASE("a run within a run is a logic error, and the outer one goes on", "[run]") {
  run([] {
    CHECK_THROWS_AS(run([] {}), std::logic_error);
    auto f = spin([] {
      CHECK_THROWS_AS(run([] {}), std::logic_error);
      return 2;
    });
    CHECK(f.await() == 2);
  });
}

TEST_CASE("options that cannot be are refused", "[run]") {
  options chosen;
  chosen.stack_size = 1;
  CHECK_THROWS_AS(run(chosen, [] {}), std::invalid_argument);
  chosen = {};
  chosen.switches_between_polls = 0;
  CHECK_THROWS_AS(run(chosen, [] {}), std::invalid_argument);
  chosen = {};
  chosen.backend = "no such backend";
  CHECK_THROWS(run(chosen, [] {}));
  CHECK(run([] { return 1; }) == 1);
}

TEST_CASE("handles outlive the runtime and give the frozen result", "[run]") {
  fiber<std::string> value;
  fiber<int> failed, never;
  fiber<void> ended;
  fiber_ref main;
  run([&] {
    main = current();
    value = spin({.name = "alto"}, [] { return std::string("a value"); });
    failed = spin([]() -> int { throw first_error(); });
    ended = spin([] { sleep(); });
    value.await();
    CHECK_THROWS_AS(failed.await(), first_error);
    never = spin([] { return 1; });
  });
  CHECK(value.await() == "a value");
  CHECK(value.name() == "alto");
  CHECK_THROWS_AS(failed.await(), first_error);
  CHECK_THROWS_AS(ended.await(), fiber_cancelled);
  CHECK_THROWS_AS(never.await(), fiber_cancelled);
  for (const fiber_ref& each : {fiber_ref(value), fiber_ref(failed), fiber_ref(ended), main}) {
    CHECK(each.state() == fiber_state::dead);
    CHECK(!each.schedule(1));
    CHECK(!each.raise(first_error()));
    CHECK(each.cancel() == cancel_result::finished);
    CHECK(each.children().empty());
  }
  CHECK(value.parent() == main);
  CHECK(!main.parent());
  CHECK(value.stop("another") == cancel_result::finished);
  run([&] {  // another runtime of the same thread
    CHECK(value.await() == "a value");
    CHECK(std::move(value).await() == "a value");
    CHECK_THROWS_AS(ended.await(), fiber_cancelled);
    ended = {};
  });
  CHECK_THROWS_AS(value.await(), std::logic_error);
}

TEST_CASE("a thread runs one runtime after another", "[run]") {
  for (int i = 0; i < 20; ++i) {
    const int got = run([i] {
      auto f = spin([i] { return i; });
      sleep_for(0ms);
      return f.await();
    });
    CHECK(got == i);
  }
}

TEST_CASE("thousands of generations end, and are forgotten with the last handle",
          "[family][deep]") {
  const auto generations = static_cast<int>(testing::scaled(10'000, 2'000));
  run([&] {
    int ended = 0;
    fiber_ref last;
    struct tree {
      int& ended;
      fiber_ref& last;
      void grow(int more) const {
        if (more == 0) {
          last = current();
        } else {
          spin([*this, more] {
            grow(more - 1);
            ++ended;
          });
          snooze();
          snooze();
        }
      }
    };
    auto root = spin([&] {
      tree{ended, last}.grow(generations);
      while (!last) snooze();
    });
    root.await();
    CHECK(last.state() == fiber_state::dead);
    auto forgetter = spin([forgotten = std::exchange(last, {})]() mutable { forgotten = {}; });
    root = {};
    forgetter.await();
  });
}

// A failure that has ended its parent's wait is the parent's, also when another fiber awaits the
// failed one before the parent has run: then both are told.

TEST_CASE("a failure that has ended its parent's sleep is thrown there, whoever claims it then",
          "[failure][claimed]") {
  run([] {
    auto fails = spin([] { throw first_error(); });
    auto claims = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
    CHECK_THROWS_AS(sleep_for(10ms), first_error);
    claims.await();
  });
}

TEST_CASE("a failure that has ended its parent's read is thrown there, whoever claims it then",
          "[failure][claimed]") {
  run([] {
    auto ends = testing::make_pipe();
    auto fails = spin([] { throw first_error(); });
    auto claims = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
    std::array<std::byte, 1> buffer;
    CHECK_THROWS_AS(io::read(ends.first(), buffer), first_error);
    claims.await();
  });
}

TEST_CASE("a failure that has ended its parent's await is thrown there, whoever claims it then",
          "[failure][claimed]") {
  run([] {
    auto fails = spin([] { throw first_error(); });
    auto claims = spin([&] { CHECK_THROWS_AS(fails.await(), first_error); });
    auto slow = spin([] {
      sleep_for(2ms);
      return 6;
    });
    CHECK_THROWS_AS(slow.await(), first_error);
    CHECK(slow.await() == 6);
    claims.await();
  });
}

TEST_CASE("a parent that ends a transient child in the middle of a read is no deadlock",
          "[structure]") {
  const auto pipe = testing::make_pipe();
  run([&] {
    auto parent = spin([&] {
      spin({.transient = true}, [&] {
        std::byte one{};
        io::read(pipe.first(), {&one, 1});
      });
      snooze();
    });
    parent.await();
  });
}
