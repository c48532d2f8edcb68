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
  timespec processor{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &processor);
  return std::chrono::seconds(processor.tv_sec) + std::chrono::nanoseconds(processor.tv_nsec);
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

struct waits_when_moved {
  explicit waits_when_moved(int& runs, std::shared_ptr<int> payload)
      : count(&runs), payload_(std::move(payload)) {}
  waits_when_moved(waits_when_moved&& other) noexcept
      : count(other.count), payload_(std::move(other.payload_)) {
    sleep_for(2ms);
  }
  void operator()() const { ++*count; }
  int* count;
  std::shared_ptr<int> payload_;
};

}  // namespace

TEST_CASE("group: the limit bounds the number of fibers at a time", "[limit]") {
  run([] {
    int running_fibers = 0;
    int peak = 0;
    int ended_fibers = 0;
    group workers{3};
    for (int i = 0; i < 20; ++i) {
      workers.spin([&] {
        peak = std::max(peak, ++running_fibers);
        sleep_for(1ms);
        --running_fibers;
        ++ended_fibers;
      });
      CHECK(workers.size() <= 3);
    }
    workers.await_all();
    CHECK(peak == 3);
    CHECK(ended_fibers == 20);
  });
}

TEST_CASE("group::spin() gives room to waiting callers in their order", "[limit]") {
  run([] {
    std::vector<int> order;
    group workers{1};
    group spinners;
    for (int i = 0; i < 5; ++i) {
      spinners.spin([&, i] {
        workers.spin([&, i] {
          order.push_back(i);
          snooze();
        });
      });
    }
    spinners.await_all();
    workers.await_all();
    CHECK(order == std::vector{0, 1, 2, 3, 4});
  });
}

TEST_CASE("group::spin() can be interrupted while it waits, and the next caller gets the room",
          "[limit]") {
  run([] {
    bool first_ran = false;
    bool second_ran = false;
    group workers{1};
    auto blocker = workers.spin([] { suspend<int>(); });
    group spinners;
    auto first = spinners.spin([&] { workers.spin([&] { first_ran = true; }); });
    auto second = spinners.spin([&] { workers.spin([&] { second_ran = true; }); });
    snooze();
    first.cancel();
    blocker.schedule(1);
    spinners.await_all();
    workers.await_all();
    CHECK_FALSE(first_ran);
    CHECK(second_ran);
  });
}

TEST_CASE("group::spin() passes its room on when it fails", "[limit]") {
  run([] {
    bool ran = false;
    group workers{1};
    auto blocker = workers.spin([] { suspend<int>(); });
    group spinners;
    auto first = spinners.spin(
        [&] { CHECK_THROWS_AS(workers.spin({.stack_size = 1}, [] {}), std::invalid_argument); });
    spinners.spin([&] { workers.spin([&] { ran = true; }); });
    snooze();
    blocker.schedule(1);
    spinners.await_all();
    workers.await_all();
    CHECK(ran);
  });
}

TEST_CASE("group::spin() is cancelled when the group ends while it waits for room", "[limit]") {
  run([] {
    bool was_cancelled = false;
    group spinners;
    {
      group workers{1};
      workers.spin([] { sleep(); });
      spinners.spin([&] {
        try {
          workers.spin([] {});
        } catch (const cancelled&) {
          was_cancelled = true;
        }
      });
      snooze();
    }
    spinners.await_all();
    CHECK(was_cancelled);
  });
}

TEST_CASE("group::spin() is refused if the group ends while the callable is moved", "[group]") {
  run([] {
    int runs = 0;
    const auto payload = std::make_shared<int>();
    std::shared_ptr<group> members;
    auto owner = spin([&] {
      members = std::make_shared<group>();
      sleep_for(1ms);
    });
    snooze();
    auto spinner = spin([&] {
      waits_when_moved body(runs, payload);
      CHECK_THROWS_AS(members->spin(std::move(body)), cancelled);
    });
    spinner.await();
    owner.await();
    snooze();
    CHECK(runs == 0);
    CHECK(payload.use_count() == 1);
  });
}

TEST_CASE("group::spin() does not touch a group that was destroyed while the callable moved",
          "[group]") {
  const bool limited = GENERATE(false, true);
  run([&] {
    int runs = 0;
    const auto payload = std::make_shared<int>();
    auto members = limited ? std::make_unique<group>(2) : std::make_unique<group>();
    auto spinner = spin([&] {
      waits_when_moved body(runs, payload);
      CHECK_THROWS_AS(members->spin(std::move(body)), cancelled);
    });
    snooze();
    members.reset();
    spinner.await();
    CHECK(runs == 0);
    CHECK(payload.use_count() == 1);
  });
}

TEST_CASE("group::spin() copes with a group destroyed while inherited values are copied",
          "[group]") {
  struct waits_when_copied {
    waits_when_copied() = default;
    waits_when_copied(const waits_when_copied& /*other*/) { sleep_for(2ms); }
  };
  run([] {
    const fiber_local<waits_when_copied> local(inherited);
    auto members = std::make_unique<group>();
    bool refused = false;
    auto spinner = spin([&] {
      *local;
      try {
        members->spin([] {});
      } catch (const cancelled&) {
        refused = true;
      }
    });
    snooze();
    members.reset();
    spinner.await();
    CHECK(refused);
  });
}

TEST_CASE("group::spin(): a callable's move constructor may destroy the group", "[group]") {
  struct ends_it_when_moved {
    explicit ends_it_when_moved(std::unique_ptr<group>& target) : target_(&target) {}
    ends_it_when_moved(ends_it_when_moved&& other) noexcept : target_(other.target_) {
      target_->reset();
    }
    void operator()() const {}
    std::unique_ptr<group>* target_;
  };
  const bool limited = GENERATE(false, true);
  run([&] {
    auto members = limited ? std::make_unique<group>(2) : std::make_unique<group>();
    bool refused = false;
    members->spin([&] {
      ends_it_when_moved body(members);
      try {
        members->spin(std::move(body));
      } catch (const cancelled&) {
        refused = true;
      }
    });
    sleep_for(1ms);
    CHECK(refused);
  });
}

TEST_CASE("group: a limit of zero is refused", "[limit]") {
  run([] { CHECK_THROWS_AS(group{0}, std::invalid_argument); });
}

TEST_CASE("group::spin() does not switch in a group without a limit", "[limit]") {
  run([] {
    bool ran = false;
    group open;
    open.spin([&] { ran = true; });
    CHECK_FALSE(ran);
    open.await_all();
  });
}

TEST_CASE("group::next() returns fibers in the order of their ends", "[next]") {
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

TEST_CASE("group::next() returns fibers that ended before the call", "[next]") {
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

TEST_CASE("group::next() skips fibers that have no handle", "[next]") {
  run([] {
    group open;
    open.spin([] {});
    {
      auto dropped = open.spin([] {});
    }
    auto handle = open.spin([] { sleep_for(1ms); });
    open.spin([] { sleep_for(2ms); });
    CHECK(open.next() == handle);
    CHECK_FALSE(open.next());
    CHECK(open.size() == 0);
  });
}

TEST_CASE("group::next() skips an ended fiber whose handle was dropped", "[next]") {
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

TEST_CASE("group: handles that outlive their group stay usable", "[next]") {
  run([] {
    fiber<int> handle;
    {
      group open;
      handle = open.spin([] { return 7; });
      open.await_all();
    }
    CHECK(handle.await() == 7);
  });
}

TEST_CASE("group::next() throws the first failure at once, and then returns the rest", "[next]") {
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
    const auto start = clock::now();
    CHECK_THROWS_WITH(open.next(), "first");
    CHECK(clock::now() - start < 20ms);
    CHECK(open.next() == failing);
    CHECK(open.next() == stubborn);
    CHECK_FALSE(open.next());
    open.await_all();
  });
}

TEST_CASE("group::next() does not wait for transient fibers", "[next]") {
  run([] {
    group open;
    auto helper = open.spin({.transient = true}, [] { sleep(); });
    auto worker = open.spin([] {});
    CHECK(open.next() == worker);
    CHECK_FALSE(open.next());
  });
}

TEST_CASE("group::next() loses no fiber when it is interrupted", "[next]") {
  run([] {
    group open;
    auto worker = open.spin([] { sleep_for(10ms); });
    CHECK_FALSE(move_on_after(1ms, [&] { open.next(); }));
    CHECK(open.next() == worker);
  });
}

TEST_CASE("group::next() throws unless the owner calls it", "[next]") {
  run([] {
    group open;
    auto stranger = spin([&] { CHECK_THROWS_AS(open.next(), std::logic_error); });
    stranger.await();
  });
}

TEST_CASE("group::failures() lists all failures, the first one first", "[failures]") {
  run([] {
    group open;
    for (const char* text : {"one", "two", "three"}) {
      open.spin([text] {
        try {
          sleep();
        } catch (const cancelled&) {
          throw std::runtime_error(text);
        }
      });
    }
    open.spin([] { throw std::runtime_error("zero"); });
    CHECK(open.failures().empty());
    CHECK_THROWS_WITH(open.await_all(), "zero");
    std::vector<std::string> texts;
    for (const auto& failure : open.failures()) texts.push_back(text_of(failure));
    CHECK(texts == std::vector<std::string>{"zero", "one", "two", "three"});
    // They were told of by the group: nobody else is.
    snooze();
  });
}

TEST_CASE("group::failures() is cleared by the first failure of a new round", "[failures]") {
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

TEST_CASE("group: a tree of depth 5 and fan-out 3 runs all 364 destructors, leaves first",
          "[tree]") {
  run([] {
    struct counted {
      int* ends;
      std::vector<int>* depths;
      int depth;
      ~counted() {
        ++*ends;
        depths->push_back(depth);
      }
    };
    int ends = 0;
    std::vector<int> depths;
    struct tree {
      static void grow(int depth, int* ends, std::vector<int>* depths) {
        const counted self{ends, depths, depth};
        group children;
        if (depth < 5) {
          for (int i = 0; i < 3; ++i) children.spin([=] { grow(depth + 1, ends, depths); });
        }
        sleep();
      }
    };
    auto root = spin([&] { tree::grow(0, &ends, &depths); });
    sleep_for(5ms);
    const auto start = processor_time();
    root.cancel();
    CHECK_THROWS_AS(root.await(), fiber_cancelled);
    CHECK(processor_time() - start < (testing::under_tsan ? 1s : 100ms));
    CHECK(ends == 364);
    CHECK(std::is_sorted(depths.begin(), depths.end(), std::greater<>()));
  });
}

TEST_CASE("group: a thousand fibers that loop on a short sleep all end when cancelled", "[tree]") {
  run([] {
    int ends = 0;
    const auto start = clock::now();
    {
      group looping;
      for (int i = 0; i < 1'000; ++i) {
        looping.spin([&] {
          struct counted {
            int& ends;
            ~counted() { ++ends; }
          } counting{ends};
          for (;;) {
            try {
              sleep_for(10ms);
            } catch (const std::exception&) {
            }
          }
        });
      }
      sleep_for(25ms);
      looping.cancel();
      looping.await_all();
    }
    CHECK(ends == 1'000);
    CHECK(clock::now() - start < 2s);
  });
}

TEST_CASE("group::spin() never takes room that is reserved for an earlier caller",
          "[group][limit]") {
  run([] {
    group one_at_a_time{1};
    int occupants = 0;
    int peak = 0;
    const auto work = [&] {
      peak = std::max(peak, ++occupants);
      for (int i = 0; i < 5; ++i) snooze();
      --occupants;
    };
    auto first = one_at_a_time.spin(work);
    auto second = spin([&] { one_at_a_time.spin(work); });
    snooze();
    first.await();  // its room is the second's, who has not run since
    one_at_a_time.spin(work);
    second.await();
    one_at_a_time.await_all();
    CHECK(peak == 1);
  });
}

TEST_CASE("group: a fiber may destroy the group of its ending owner, which ends once", "[group]") {
  run([] {
    bool all_over = false;
    auto owner = spin([&] {
      auto members = std::make_shared<group>();
      members->spin([members] { sleep(); });
      members->spin([&] {
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

TEST_CASE("group: one created by a capture's destructor does not outlive the fiber", "[group]") {
  run([] {
    bool was_run = false;
    struct late {
      std::unique_ptr<group>* slot;
      bool* flag;
      late(std::unique_ptr<group>* target, bool* notified) noexcept
          : slot(target), flag(notified) {}
      late(late&& other) noexcept : slot(std::exchange(other.slot, nullptr)), flag(other.flag) {}
      ~late() {
        if (slot == nullptr) return;
        *slot = std::make_unique<group>();
        (*slot)->spin([notified = flag] {
          struct note {
            bool* notified;
            ~note() { *notified = true; }
          } noting{notified};
          sleep();
        });
        snooze();
      }
    };
    std::unique_ptr<group> escaped;
    spin([payload = late(&escaped, &was_run)] {}).await();
    CHECK(was_run);
    escaped.reset();
  });
}

TEST_CASE("group::next() skips a failed fiber that has no handle", "[next]") {
  run([] {
    group open;
    open.spin([] { throw std::runtime_error("one"); });
    open.spin([] { throw std::runtime_error("two"); });
    CHECK_THROWS_WITH(open.next(), "one");
    CHECK_FALSE(open.next());
  });
}

TEST_CASE("group::spin() counts the room as taken while the callable is moved", "[limit]") {
  run([] {
    struct slow_copy {
      slow_copy() = default;
      slow_copy(const slow_copy&) { snooze(); }
    };
    const fiber_local<slow_copy> slow(inherited);
    group workers{1};
    std::size_t peak = 0;
    group spinners;
    for (int i = 0; i < 3; ++i) {
      spinners.spin([&] {
        slow.get();
        workers.spin([&] {
          peak = std::max(peak, workers.size());
          snooze();
        });
      });
    }
    spinners.await_all();
    workers.await_all();
    CHECK(peak == 1);
  });
}
