// SPDX-License-Identifier: MIT
// Groups that have a limit, that tell who has ended, and that remember what failed.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// What this thread has used: other processes do not make it more.
std::chrono::nanoseconds processor_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

struct waits_when_moved {
  explicit waits_when_moved(int& runs, std::shared_ptr<int> held)
      : count(&runs), what(std::move(held)) {}
  waits_when_moved(waits_when_moved&& other) noexcept
      : count(other.count), what(std::move(other.what)) {
    sleep_for(2ms);
  }
  void operator()() const { ++*count; }
  int* count;
  std::shared_ptr<int> what;
};

}  // namespace

TEST_CASE("a group with a limit never has more fibers than that", "[limit]") {
  run([] {
    int now = 0;
    int most = 0;
    int done = 0;
    group limited{3};
    for (int i = 0; i < 20; ++i) {
      limited.spin([&] {
        most = std::max(most, ++now);
        sleep_for(1ms);
        --now;
        ++done;
      });
      CHECK(limited.size() <= 3);
    }
    limited.await_all();
    CHECK(most == 3);
    CHECK(done == 20);
  });
}

TEST_CASE("those who wait for room get it in their order", "[limit]") {
  run([] {
    std::vector<int> order;
    group limited{1};
    group spinners;
    for (int i = 0; i < 5; ++i) {
      spinners.spin([&, i] {
        limited.spin([&, i] {
          order.push_back(i);
          snooze();
        });
      });
    }
    spinners.await_all();
    limited.await_all();
    CHECK(order == std::vector{0, 1, 2, 3, 4});
  });
}

TEST_CASE("waiting for room can be interrupted, and the room goes to the next", "[limit]") {
  run([] {
    bool first_ran = false;
    bool second_ran = false;
    group limited{1};
    auto blocker = limited.spin([] { suspend<int>(); });
    group spinners;
    auto first = spinners.spin([&] { limited.spin([&] { first_ran = true; }); });
    auto second = spinners.spin([&] { limited.spin([&] { second_ran = true; }); });
    snooze();
    first.cancel();
    blocker.schedule(1);
    spinners.await_all();
    limited.await_all();
    CHECK_FALSE(first_ran);
    CHECK(second_ran);
  });
}

TEST_CASE("room that a failed spin gave up goes to the next", "[limit]") {
  run([] {
    bool ran = false;
    group limited{1};
    auto blocker = limited.spin([] { suspend<int>(); });
    group spinners;
    auto first = spinners.spin(
        [&] { CHECK_THROWS_AS(limited.spin({.stack_size = 1}, [] {}), std::invalid_argument); });
    spinners.spin([&] { limited.spin([&] { ran = true; }); });
    snooze();
    blocker.schedule(1);
    spinners.await_all();
    limited.await_all();
    CHECK(ran);
  });
}

TEST_CASE("who waits for room in a group that ends is cancelled", "[limit]") {
  run([] {
    bool told = false;
    group spinners;
    {
      group limited{1};
      limited.spin([] { sleep(); });
      spinners.spin([&] {
        try {
          limited.spin([] {});
        } catch (const cancelled&) {
          told = true;
        }
      });
      snooze();
    }
    spinners.await_all();
    CHECK(told);
  });
}

TEST_CASE("a fiber whose group ends while its callable is moved is refused", "[group]") {
  run([] {
    int runs = 0;
    const auto held = std::make_shared<int>();
    std::shared_ptr<group> joined;
    auto owner = spin([&] {
      joined = std::make_shared<group>();
      sleep_for(1ms);
    });
    snooze();
    auto spinner = spin([&] {
      waits_when_moved body(runs, held);
      CHECK_THROWS_AS(joined->spin(std::move(body)), cancelled);
    });
    spinner.await();
    owner.await();
    snooze();
    CHECK(runs == 0);
    CHECK(held.use_count() == 1);
  });
}

TEST_CASE("a group that is gone when a callable has been moved is not looked at", "[group]") {
  const bool limited = GENERATE(false, true);
  run([&] {
    int runs = 0;
    const auto held = std::make_shared<int>();
    auto joined = limited ? std::make_unique<group>(2) : std::make_unique<group>();
    auto spinner = spin([&] {
      waits_when_moved body(runs, held);
      CHECK_THROWS_AS(joined->spin(std::move(body)), cancelled);
    });
    snooze();
    joined.reset();
    spinner.await();
    CHECK(runs == 0);
    CHECK(held.use_count() == 1);
  });
}

TEST_CASE("a group may be gone when what its fiber's child inherits has been copied", "[group]") {
  struct waits_when_copied {
    waits_when_copied() = default;
    waits_when_copied(const waits_when_copied& /*other*/) { sleep_for(2ms); }
  };
  run([] {
    const fiber_local<waits_when_copied> local(inherited);
    auto joined = std::make_unique<group>();
    bool refused = false;
    auto spinner = spin([&] {
      *local;
      try {
        joined->spin([] {});
      } catch (const cancelled&) {
        refused = true;
      }
    });
    snooze();
    joined.reset();
    spinner.await();
    CHECK(refused);
  });
}

TEST_CASE("a fiber may end its group while it moves what it spins there", "[group]") {
  struct ends_it_when_moved {
    explicit ends_it_when_moved(std::unique_ptr<group>& which) : ended(&which) {}
    ends_it_when_moved(ends_it_when_moved&& other) noexcept : ended(other.ended) { ended->reset(); }
    void operator()() const {}
    std::unique_ptr<group>* ended;
  };
  const bool limited = GENERATE(false, true);
  run([&] {
    auto joined = limited ? std::make_unique<group>(2) : std::make_unique<group>();
    bool refused = false;
    joined->spin([&] {
      ends_it_when_moved body(joined);
      try {
        joined->spin(std::move(body));
      } catch (const cancelled&) {
        refused = true;
      }
    });
    sleep_for(1ms);
    CHECK(refused);
  });
}

TEST_CASE("a group without room for one is refused", "[limit]") {
  run([] { CHECK_THROWS_AS(group{0}, std::invalid_argument); });
}

TEST_CASE("a group without a limit does not switch in spin", "[limit]") {
  run([] {
    bool ran = false;
    group open;
    open.spin([&] { ran = true; });
    CHECK_FALSE(ran);
    open.await_all();
  });
}

TEST_CASE("next tells who has ended, in the order of their ends", "[next]") {
  run([] {
    group open;
    auto slow = open.spin([] { sleep_for(20ms); });
    auto fast = open.spin([] { sleep_for(5ms); });
    auto middle = open.spin([] { sleep_for(10ms); });
    CHECK(open.next() == fast);
    CHECK(open.next() == middle);
    sleep_for(30ms);
    CHECK(open.next() == slow);
    CHECK_FALSE(open.next());
    CHECK_FALSE(open.next());
  });
}

TEST_CASE("next tells of those that ended before it was called", "[next]") {
  run([] {
    group open;
    auto first = open.spin([] {});
    auto second = open.spin([] {});
    sleep_for(1ms);
    CHECK(open.next() == first);
    CHECK(open.next() == second);
    CHECK_FALSE(open.next());
  });
}

TEST_CASE("next does not tell of those to which nobody has a handle", "[next]") {
  run([] {
    group open;
    open.spin([] {});
    {
      auto dropped = open.spin([] {});
    }
    auto kept = open.spin([] { sleep_for(1ms); });
    open.spin([] { sleep_for(2ms); });
    CHECK(open.next() == kept);
    CHECK_FALSE(open.next());
    CHECK(open.size() == 0);
  });
}

TEST_CASE("a handle that is dropped after the end takes its fiber from those next tells of",
          "[next]") {
  run([] {
    group open;
    auto first = open.spin([] {});
    auto second = open.spin([] {});
    sleep_for(1ms);
    first = {};
    CHECK(open.next() == second);
    CHECK_FALSE(open.next());
  });
}

TEST_CASE("handles that outlive their group are as good as any", "[next]") {
  run([] {
    fiber<int> kept;
    {
      group open;
      kept = open.spin([] { return 7; });
      open.await_all();
    }
    CHECK(kept.await() == 7);
  });
}

TEST_CASE("next throws the first failure as soon as it is known, and then tells of the rest",
          "[next]") {
  run([] {
    group open;
    auto stubborn = open.spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(20ms);
      }
    });
    auto failing = open.spin([] {
      sleep_for(5ms);
      throw std::runtime_error("first");
    });
    const auto begun = clock::now();
    CHECK_THROWS_WITH(open.next(), "first");
    CHECK(clock::now() - begun < 20ms);
    CHECK(open.next() == failing);
    CHECK(open.next() == stubborn);
    CHECK_FALSE(open.next());
    open.await_all();
  });
}

TEST_CASE("next waits for transient fibers no longer than for anything else", "[next]") {
  run([] {
    group open;
    auto helper = open.spin({.transient = true}, [] { sleep(); });
    auto worker = open.spin([] {});
    CHECK(open.next() == worker);
    CHECK_FALSE(open.next());
  });
}

TEST_CASE("an interrupted next loses nothing", "[next]") {
  run([] {
    group open;
    auto worker = open.spin([] { sleep_for(10ms); });
    CHECK_FALSE(move_on_after(1ms, [&] { open.next(); }));
    CHECK(open.next() == worker);
  });
}

TEST_CASE("only its owner may ask a group for the next", "[next]") {
  run([] {
    group open;
    auto other = spin([&] { CHECK_THROWS_AS(open.next(), std::logic_error); });
    other.await();
  });
}

TEST_CASE("a group tells all that failed, the first one first", "[failures]") {
  run([] {
    group open;
    for (const char* each : {"one", "two", "three"}) {
      open.spin([each] {
        try {
          sleep();
        } catch (const cancelled&) {
          throw std::runtime_error(each);
        }
      });
    }
    open.spin([] { throw std::runtime_error("zero"); });
    CHECK(open.failures().empty());
    CHECK_THROWS_WITH(open.await_all(), "zero");
    std::vector<std::string> texts;
    for (const auto& each : open.failures()) texts.push_back(text_of(each));
    CHECK(texts == std::vector<std::string>{"zero", "one", "two", "three"});
    // They were told of by the group: nobody else is.
    snooze();
  });
}

TEST_CASE("a new round with a failure forgets those of the last", "[failures]") {
  run([] {
    group open;
    open.spin([] { throw std::runtime_error("old"); });
    CHECK_THROWS_WITH(open.await_all(), "old");
    open.spin([] {});
    open.await_all();
    CHECK(open.failures().size() == 1);
    open.spin([] { throw std::runtime_error("new"); });
    CHECK_THROWS_WITH(open.await_all(), "new");
    REQUIRE(open.failures().size() == 1);
    CHECK(text_of(open.failures()[0]) == "new");
  });
}

TEST_CASE("ending a tree of depth 5 and fan-out 3 runs all 364 destructors, leaves first",
          "[tree]") {
  run([] {
    struct counted {
      int* ended;
      std::vector<int>* depths;
      int depth;
      ~counted() {
        ++*ended;
        depths->push_back(depth);
      }
    };
    int ended = 0;
    std::vector<int> depths;
    struct tree {
      static void grow(int depth, int* ended, std::vector<int>* depths) {
        const counted self{ended, depths, depth};
        group children;
        if (depth < 5) {
          for (int i = 0; i < 3; ++i) children.spin([=] { grow(depth + 1, ended, depths); });
        }
        sleep();
      }
    };
    auto root = spin([&] { tree::grow(0, &ended, &depths); });
    sleep_for(5ms);
    const auto begun = processor_time();
    root.cancel();
    CHECK_THROWS_AS(root.await(), fiber_cancelled);
    CHECK(processor_time() - begun < (testing::under_tsan ? 1s : 100ms));
    CHECK(ended == 364);
    CHECK(std::is_sorted(depths.begin(), depths.end(), std::greater<>()));
  });
}

TEST_CASE("a thousand fibers that loop on a short sleep all end when they are told", "[tree]") {
  run([] {
    int ended = 0;
    const auto begun = clock::now();
    {
      group all;
      for (int i = 0; i < 1'000; ++i) {
        all.spin([&] {
          struct counted {
            int& ended;
            ~counted() { ++ended; }
          } counting{ended};
          for (;;) {
            try {
              sleep_for(10ms);
            } catch (const std::exception&) {
            }
          }
        });
      }
      sleep_for(25ms);
      all.cancel();
      all.await_all();
    }
    CHECK(ended == 1'000);
    CHECK(clock::now() - begun < 2s);
  });
}

TEST_CASE("room that was promised to somebody is not taken by who comes later", "[group][limit]") {
  run([] {
    group one_at_a_time{1};
    int inside = 0;
    int most = 0;
    const auto work = [&] {
      most = std::max(most, ++inside);
      for (int i = 0; i < 5; ++i) snooze();
      --inside;
    };
    auto first = one_at_a_time.spin(work);
    auto second = spin([&] { one_at_a_time.spin(work); });
    snooze();
    first.await();  // its room is the second's, who has not run since
    one_at_a_time.spin(work);
    second.await();
    one_at_a_time.await_all();
    CHECK(most == 1);
  });
}

TEST_CASE("a group that its own fiber ends when its owner is over is ended once", "[group]") {
  run([] {
    bool all_over = false;
    auto owner = spin([&] {
      auto shared = std::make_shared<group>();
      shared->spin([shared] { sleep(); });
      shared->spin([&] {
        try {
          sleep();
        } catch (const cancelled&) {
          sleep_for(10ms);
          all_over = true;
          throw;
        }
      });
      snooze();
    });
    owner.await();
    CHECK(all_over);
  });
}

TEST_CASE("a group that is made by a capture's destructor does not outlive the fiber", "[group]") {
  run([] {
    bool over = false;
    struct late {
      std::unique_ptr<group>* made;
      bool* over;
      late(std::unique_ptr<group>* into, bool* told) noexcept : made(into), over(told) {}
      late(late&& other) noexcept : made(std::exchange(other.made, nullptr)), over(other.over) {}
      ~late() {
        if (made == nullptr) return;
        *made = std::make_unique<group>();
        (*made)->spin([told = over] {
          struct note {
            bool* told;
            ~note() { *told = true; }
          } noting{told};
          sleep();
        });
        snooze();
      }
    };
    std::unique_ptr<group> escaped;
    spin([kept = late(&escaped, &over)] {}).await();
    CHECK(over);
    escaped.reset();
  });
}

TEST_CASE("next tells of no failed fiber to which nobody has a handle", "[next]") {
  run([] {
    group open;
    open.spin([] { throw std::runtime_error("one"); });
    open.spin([] { throw std::runtime_error("two"); });
    CHECK_THROWS_WITH(open.next(), "one");
    CHECK_FALSE(open.next());
  });
}

TEST_CASE("room counts as taken while what is spun is made", "[limit]") {
  run([] {
    struct slow_copy {
      slow_copy() = default;
      slow_copy(const slow_copy&) { snooze(); }
    };
    const fiber_local<slow_copy> slow(inherited);
    group limited{1};
    std::size_t most = 0;
    group spinners;
    for (int i = 0; i < 3; ++i) {
      spinners.spin([&] {
        slow.get();
        limited.spin([&] {
          most = std::max(most, limited.size());
          snooze();
        });
      });
    }
    spinners.await_all();
    limited.await_all();
    CHECK(most == 1);
  });
}
