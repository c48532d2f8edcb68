// SPDX-License-Identifier: MIT
// Values that each fiber has its own of, and objects that live until their fiber ends.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::at_end;
using testing::note;
using testing::oops;
using testing::words;

namespace {

template <typename F>
void make_at_end(F f) {
  make_local<at_end<F>>(std::move(f));
}

/// How many there are.
struct counted {
  counted() { ++constructed; }
  counted(const counted& other) : value(other.value) { ++constructed; }
  counted& operator=(const counted&) = default;
  ~counted() { ++destroyed; }
  int value = 0;
  static inline std::atomic<int> constructed{0};
  static inline std::atomic<int> destroyed{0};
};

/// Its copies throw when it is to.
struct reluctant {
  reluctant() = default;
  reluctant(const reluctant& other) : throws(other.throws) {
    if (throws) throw oops();
  }
  reluctant& operator=(const reluctant&) = default;
  bool throws = false;
};

}  // namespace

TEST_CASE("make_local(): a fiber's locals are destroyed when it ends, the newest first",
          "[local]") {
  run([] {
    words trace;
    spin([&] {
      make_local<note>(trace, "~A");
      make_local<note>(trace, "~B");
      snooze();
      make_local<note>(trace, "~C");
      CHECK(trace.empty());
    }).await();
    CHECK(trace == words{"~C", "~B", "~A"});
  });
}

TEST_CASE("make_local() and fiber_local values are destroyed in one order", "[local]") {
  run([] {
    words trace;
    const fiber_local<note> value([&] { return note(trace, "value"); });
    spin([&] {
      make_local<note>(trace, "first");
      value.get();
      make_local<note>(trace, "last");
    }).await();
    CHECK(trace == words{"last", "value", "first"});
  });
}

TEST_CASE("make_local() forwards its arguments, which may be move-only", "[local]") {
  run([] {
    struct pair {
      pair(std::unique_ptr<int> p, int& r) : pointer(std::move(p)), reference(r) {}
      std::unique_ptr<int> pointer;
      int& reference;
    };
    int target = 0;
    pair& object = make_local<pair>(std::make_unique<int>(7), target);
    CHECK(*object.pointer == 7);
    object.reference = 5;
    CHECK(target == 5);
    CHECK(make_local<const int>(3) == 3);
    CHECK(make_local<int>() == 0);
  });
}

TEST_CASE("make_local() accepts immovable and over-aligned types", "[local]") {
  struct alignas(256) wide {
    explicit wide(int v) : value(v) {}
    wide(const wide&) = delete;
    wide& operator=(const wide&) = delete;
    std::atomic<int> value;
  };
  run([] {
    spin([] {
      for (int i = 0; i < 5; ++i) {
        const wide& object = make_local<wide>(i);
        CHECK(reinterpret_cast<std::uintptr_t>(&object) % 256 == 0);
        CHECK(object.value == i);
      }
    }).await();
  });
}

TEST_CASE("make_local() leaves no local when the constructor throws", "[local]") {
  run([] {
    struct throwing {
      explicit throwing(words& trace) : member(trace, "member") { throw oops(); }
      ~throwing() { member.trace->push_back("destroyed"); }
      note member;
    };
    words trace;
    const fiber_local<throwing> value([&] { return throwing(trace); });
    spin([&] {
      CHECK_THROWS_AS(make_local<throwing>(trace), oops);
      CHECK_THROWS_AS(value.get(), oops);
      CHECK_THROWS_AS(value.get(), oops);
    }).await();
    CHECK(trace == words{"member", "member", "member"});
  });
}

TEST_CASE("make_local(): locals are destroyed however their fiber ends", "[local]") {
  run([] {
    words trace;
    spin([&] { make_local<note>(trace, "returned"); }).await();
    auto failing = spin([&] {
      make_local<note>(trace, "failed");
      throw oops();
    });
    CHECK_THROWS_AS(failing.await(), oops);
    auto victim = spin([&] {
      make_local<note>(trace, "cancelled");
      sleep();
    });
    auto stopped_fiber = spin([&] {
      make_local<note>(trace, "stopped");
      sleep();
      return 1;
    });
    snooze();
    victim.cancel();
    CHECK_THROWS_AS(victim.await(), fiber_cancelled);
    stopped_fiber.stop(2);
    CHECK(stopped_fiber.await() == 2);
    CHECK(trace == words{"returned", "failed", "cancelled", "stopped"});
  });
}

TEST_CASE("make_local(): each local of a randomly cancelled fiber is destroyed exactly once",
          "[local][stress]") {
  const fiber_local<counted> inherited_value(inherited);
  const int fibers =
      static_cast<int>(testing::scaled(10'000, testing::under_tsan ? 2'000 : 10'000));
  const int made_before = counted::constructed;
  const int destroyed_before = counted::destroyed;
  run([&] {
    std::mt19937 dice(4711);
    inherited_value->value = 1;
    for (int count = 0; count < fibers;) {
      std::vector<fiber<void>> batch;
      for (int i = 0; i < 100; ++i, ++count) {
        batch.push_back(spin([&] {
          for (;;) {
            make_local<counted>();
            snooze();
            ++inherited_value->value;
          }
        }));
        if (dice() % 4 == 0) snooze();
        if (dice() % 2 == 0) batch[dice() % batch.size()].cancel();
      }
      for (const auto& handle : batch) {
        handle.cancel();
        CHECK_THROWS_AS(handle.await(), fiber_cancelled);
      }
    }
    CHECK(inherited_value->value == 1);
  });
  CHECK(counted::constructed - made_before > fibers);
  CHECK(counted::constructed - made_before == counted::destroyed - destroyed_before);
}

TEST_CASE("fiber_local makes no value in a fiber that is cancelled before it runs", "[local]") {
  run([] {
    words trace;
    const fiber_local<note> value([&] { return note(trace, "value"); });
    auto never = spin([&] { value.get(); });
    never.cancel();
    CHECK_THROWS_AS(never.await(), fiber_cancelled);
    CHECK(trace.empty());
  });
}

TEST_CASE("make_local(): the main fiber's locals die after its fibers, before run() ends",
          "[local]") {
  words trace;
  run([&] {
    make_local<note>(trace, "main's");
    spin([&] {
      make_local<note>(trace, "a fiber's");
      sleep();
    });
    snooze();
  });
  CHECK(trace == words{"a fiber's", "main's"});
  CHECK_THROWS_AS(run([&] {
                    make_local<note>(trace, "of main, which has thrown");
                    throw oops();
                  }),
                  oops);
  CHECK(trace.size() == 3);
}

TEST_CASE("make_local() on a thread starts its runtime; the locals die with the thread",
          "[local]") {
  words trace;
  const fiber_local<int> value(5);
  std::thread([&] {
    CHECK(*value == 5);
    make_local<note>(trace, "the thread's");
    spin([&] { make_local<note>(trace, "a fiber's"); }).await();
  }).join();
  std::thread([&] { make_local<note>(trace, "another's"); }).join();
  CHECK(trace == words{"a fiber's", "the thread's", "another's"});
}

TEST_CASE("fiber_local has one value per fiber, and references to it stay valid", "[fiber_local]") {
  const fiber_local<int> value;
  run([&] {
    int& of_main = *value;
    group fibers;
    for (int i = 1; i <= 20; ++i) {
      fibers.spin([&value, &of_main, i] {
        int& reference = *value;
        CHECK(reference == 0);
        CHECK(&reference != &of_main);
        reference = i;
        for (int round = 0; round < 10; ++round) {
          make_local<int>(round);
          sleep_for(1us);
          CHECK(*value == i);
          CHECK(&*value == &reference);
        }
      });
    }
    fibers.await_all();
    CHECK(of_main == 0);
    CHECK(&*value == &of_main);
  });
}

TEST_CASE("fiber_local has values in fibers of several threads at once", "[fiber_local][threads]") {
  const fiber_local<std::vector<int>> value([] { return std::vector<int>{1}; });
  std::array<bool, 4> right{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      run([&] {
        bool all_right = true;
        group fibers;
        for (int i = 0; i < 50; ++i) {
          fibers.spin([&, i] {
            for (int round = 0; round < 10; ++round) {
              value->push_back(i);
              snooze();
            }
            all_right = all_right && value->size() == 11 && value->back() == i;
          });
        }
        fibers.await_all();
        right[t] = all_right && value->size() == 1;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::array<bool, 4>{true, true, true, true});
}

TEST_CASE("fiber_local creates its value by T(), by copy or by a factory", "[fiber_local]") {
  const fiber_local<int> plain;
  const fiber_local<std::string> from_copy("first");
  int calls = 0;
  const fiber_local<int> counting([&] { return ++calls; });
  const fiber_local<bool> callable([] { return true; });
  run([&] {
    CHECK(*plain == 0);
    CHECK(*from_copy == "first");
    from_copy->append("!");
    CHECK(*counting == 1);
    CHECK(*counting == 1);
    CHECK(*callable);
    spin([&] {
      CHECK(*from_copy == "first");
      CHECK(*counting == 2);
    }).await();
    spin([&] { CHECK(calls == 2); }).await();
    CHECK(*from_copy == "first!");
  });
}

TEST_CASE("fiber_local values may be move-only or immovable", "[fiber_local]") {
  const fiber_local<std::unique_ptr<int>> pointer;
  const fiber_local<std::unique_ptr<int>> filled([] { return std::make_unique<int>(3); });
  const fiber_local<std::atomic<int>> number;
  run([&] {
    CHECK(pointer.get() == nullptr);
    pointer.get() = std::make_unique<int>(2);
    CHECK(**filled == 3);
    ++*number;
    spin([&] {
      CHECK(pointer.get() == nullptr);
      CHECK(**filled == 3);
      CHECK(number->load() == 0);
    }).await();
    CHECK(**pointer == 2);
    CHECK(number->load() == 1);
  });
}

TEST_CASE("fiber_local: a value that is not inherited starts afresh in a spun fiber",
          "[fiber_local]") {
  const fiber_local<int> value(1);
  run([&] {
    *value = 2;
    spin([&] { CHECK(*value == 1); }).await();
  });
}

TEST_CASE("fiber_local: an inherited value is copied from the spinner when it spins",
          "[fiber_local][inherited]") {
  const fiber_local<std::string> value(inherited, "anew");
  const fiber_local<int> constructed(inherited, [] { return 7; });
  const fiber_local<int> plain(inherited);
  run([&] {
    auto early = spin([&] {
      CHECK(*value == "anew");  // nobody had one to inherit
      CHECK(*constructed == 7);
      CHECK(*plain == 0);
    });
    *value = "main's";
    *plain = 1;
    auto child = spin([&] {
      CHECK(*value == "main's");
      CHECK(*plain == 1);
      *value += ", child's";
      auto grandchild = spin([&] {
        CHECK(*value == "main's, child's");
        *value = "grandchild's";
      });
      *value = "changed since";
      grandchild.await();
      CHECK(*value == "changed since");
    });
    *value = "main's again";
    early.await();
    child.await();
    CHECK(*value == "main's again");
  });
}

TEST_CASE("fiber_local: a fiber in a group inherits from the fiber that spins it",
          "[fiber_local][inherited]") {
  const fiber_local<int> value(inherited);
  run([&] {
    *value = 1;
    group voices;
    voices.spin([&] {
      CHECK(*value == 1);
      *value = 2;
      voices.spin([&] { CHECK(*value == 2); });
    });
    voices.spin({.name = "second"}, [&] { CHECK(*value == 1); });
    voices.await_all();
  });
}

TEST_CASE("fiber_local: a copy that throws makes spin() throw before it has an effect",
          "[fiber_local][inherited]") {
  const fiber_local<counted> good(inherited);
  const fiber_local<reluctant> bad(inherited);
  const int made_before = counted::constructed;
  const int destroyed_before = counted::destroyed;
  run([&] {
    bool ran = false;
    good.get();
    bad->throws = true;
    CHECK_THROWS_AS(spin([&] { ran = true; }), oops);
    group voices;
    CHECK_THROWS_AS(voices.spin([&] { ran = true; }), oops);
    CHECK(current().children().empty());
    CHECK(voices.size() == 0);
    bad->throws = false;
    spin([&] { CHECK(!bad->throws); }).await();
    CHECK(!ran);
  });
  CHECK(counted::constructed - made_before == 1 + 3);
  CHECK(counted::constructed - made_before == counted::destroyed - destroyed_before);
}

TEST_CASE("fiber_local: inherited values of a fiber that never runs are destroyed",
          "[fiber_local][inherited]") {
  const fiber_local<counted> value(inherited);
  const int made_before = counted::constructed;
  const int destroyed_before = counted::destroyed;
  run([&] {
    value.get();
    auto never = spin([] { FAIL("it ran"); });
    never.cancel();
    CHECK_THROWS_AS(never.await(), fiber_cancelled);
    CHECK(counted::destroyed - destroyed_before == 1);
    CHECK_THROWS_AS(spin({.stack_size = 1}, [] {}), std::invalid_argument);
    struct stubborn {
      reluctant captured;
      void operator()() const {}
    } body;
    body.captured.throws = true;
    CHECK_THROWS_AS(spin(body), oops);
  });
  CHECK(counted::constructed - made_before == 1 + 3);
  CHECK(counted::constructed - made_before == counted::destroyed - destroyed_before);
}

TEST_CASE("fiber_local: inherited values are destroyed in the order of the originals",
          "[fiber_local][inherited]") {
  static words trace;
  trace.clear();
  struct noting {
    std::string word;
    ~noting() {
      if (!word.empty()) trace.push_back(word);
    }
  };
  const fiber_local<noting> a(inherited), b(inherited), c(inherited);
  run([&] {
    b->word = "b";
    a->word = "a";
    c->word = "c";
    spin([&] { make_local<note>(trace, "own"); }).await();
    CHECK(trace == words{"own", "c", "a", "b"});
    trace.clear();
  });
  CHECK(trace == words{"c", "a", "b"});
}

TEST_CASE("fiber_local: values outlive the variable, and its successor does not find them",
          "[fiber_local]") {
  run([] {
    words trace;
    std::optional<fiber_local<note>> value;
    value.emplace([&] { return note(trace, "of the first"); });
    auto holder = spin([&] {
      note& reference = value->get();
      suspend();
      CHECK(reference.word == "of the first");
      CHECK(value->get().word == "of the second");
    });
    snooze();
    value.emplace([&] { return note(trace, "of the second"); });
    holder.schedule();
    holder.await();
    CHECK(trace == words{"of the second", "of the first"});
  });
}

TEST_CASE("make_local(): locals are destroyed after the children, before the captures", "[local]") {
  run([] {
    words trace;
    auto parent = spin([&trace, last = note(trace, "capture")] {
      make_local<note>(trace, "local");
      spin([&trace] {
        make_local<note>(trace, "child's local");
        const note frame(trace, "child's frame");
        sleep();
      });
      snooze();
      const note frame(trace, "frame");
    });
    parent.await();
    CHECK(trace == words{"frame", "child's frame", "child's local", "local", "capture"});
  });
}

TEST_CASE("make_local(): a local's destructor may wait, and nothing interrupts it", "[local]") {
  run([] {
    words trace;
    auto waits = spin([&] {
      make_local<note>(trace, "older");
      make_at_end([&] {
        sleep_for(2ms);
        snooze();
        trace.emplace_back("has waited");
      });
      sleep();
    });
    snooze();
    waits.cancel();
    snooze();
    CHECK(waits.cancel() != cancel_result::accepted);
    CHECK(!waits.raise(oops()));
    CHECK_THROWS_AS(waits.await(), fiber_cancelled);
    CHECK(trace == words{"has waited", "older"});
  });
}

TEST_CASE("make_local(): destructors of the main fiber's locals may wait, too", "[local]") {
  words trace;
  run([&] {
    make_at_end([&] {
      sleep_for(1ms);
      group helpers;
      helpers.spin([&] { trace.emplace_back("helped"); });
      helpers.await_all();
    });
  });
  CHECK(trace == words{"helped"});
}

TEST_CASE("make_local(): a local created by a local's destructor is destroyed as well", "[local]") {
  run([] {
    words trace;
    const fiber_local<int> value(5);
    spin([&] {
      make_local<note>(trace, "first");
      make_at_end([&] {
        make_local<note>(trace, "second");
        make_at_end([&] {
          make_local<note>(trace, "third");
          CHECK(*value == 5);
        });
      });
    }).await();
    CHECK(trace == words{"third", "second", "first"});
  });
}

TEST_CASE("make_local(): locals created by destructors of captures and results are destroyed",
          "[local]") {
  words trace;
  struct maker {
    explicit maker(words& target) : trace(&target) {}
    maker(maker&& other) noexcept : trace(std::exchange(other.trace, nullptr)) {}
    maker& operator=(maker&&) = delete;
    ~maker() {
      if (trace != nullptr) make_local<note>(*trace, "made");
    }
    words* trace;
  };
  run([&] {
    spin([captured = maker(trace)] {}).await();
    CHECK(trace == words{"made"});
    spin([&] { return maker(trace); });
    snooze();
    CHECK(trace == words{"made", "made"});
    make_at_end([&] { const maker last(trace); });
  });
  CHECK(trace == words{"made", "made", "made"});
}

TEST_CASE("fiber_local: a value's destructor that reads the variable gets that value",
          "[fiber_local]") {
  struct asking {
    const fiber_local<asking>* source = nullptr;
    int* answer = nullptr;
    ~asking() {
      if (source != nullptr && &source->get() == this) ++*answer;
    }
  };
  int answer = 0;
  run([&] {
    const fiber_local<asking> value;
    spin([&] {
      value->source = &value;
      value->answer = &answer;
    }).await();
    CHECK(answer == 1);
  });
}

TEST_CASE("make_local() may hold a group", "[local]") {
  run([] {
    words trace;
    auto owner = spin([&] {
      auto& voices = make_local<group>();
      voices.spin([&] {
        const note frame(trace, "voice");
        sleep();
      });
      snooze();
    });
    owner.await();
    CHECK(trace == words{"voice"});
  });
}
