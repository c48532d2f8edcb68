// SPDX-License-Identifier: MIT
// Who belongs to whom, as everybody sees it; and what a fiber inherits, on whatever way it comes to
// be.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::run_here;
using testing::settle;

namespace {

const fiber_local<std::string> request(inherited, "none");

struct counted {
  counted() = default;
  counted(const counted&) {
    if (throws) throw std::runtime_error("no copy");
    ++copies;
    copied_by = current();
  }
  static inline bool throws = false;
  static inline std::atomic<int> copies{0};
  static inline fiber_ref copied_by;
};

std::vector<std::string> names_of(const std::vector<fiber_ref>& fibers) {
  std::vector<std::string> names;
  for (const fiber_ref& each : fibers) names.push_back(each.name());
  return names;
}

}  // namespace

TEST_CASE("children are told of in the order of their age, those in groups among them",
          "[children]") {
  run([] {
    const auto wait = [] { sleep(); };
    group first;
    const auto a = spin({.name = "a"}, wait);
    const auto b = first.spin({.name = "b"}, wait);
    const auto c = spin({.name = "c"}, wait);
    {
      group second;
      const auto d = second.spin({.name = "d"}, wait);
      const auto e = first.spin({.name = "e"}, wait);
      const auto f = spin({.name = "f"}, wait);
      CHECK(names_of(current().children()) ==
            std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
      settle();
      c.cancel();
      settle();
      CHECK(names_of(current().children()) == std::vector<std::string>{"a", "b", "d", "e", "f"});
      second.cancel();
    }
    first.cancel();
  });
}

TEST_CASE("a child on another thread is told of in its turn, and never its keeper", "[children]") {
  run_here([] {
    thread other([] { sleep(); });
    const auto wait = [] { sleep(); };
    const auto a = spin({.name = "a"}, wait);
    const auto b = other.spin(wait);
    const auto c = spin({.name = "c"}, wait);
    CHECK(current().children() == std::vector<fiber_ref>{a, b, c});
    CHECK(b.parent() == current());
    auto spinning = spin([&] {
      other.spin(wait);
      sleep();
    });
    for (int i = 0; i < 20; ++i) {
      for (const fiber_ref& each : spinning.children()) CHECK(each.name() != "keeper");
      snooze();
    }
  });
}

TEST_CASE("a dead child on another thread is listed no more", "[children]") {
  run_here([] {
    thread other([] { sleep(); });
    event go;
    const auto child = other.spin([&] { go.wait(); });
    CHECK(current().children() == std::vector<fiber_ref>{child});
    go.set();
    while (child.state() != fiber_state::dead) std::this_thread::yield();
    // There was no switchpoint, so its keeper is there yet.
    CHECK(current().children().empty());
  });
}

TEST_CASE("supervised children are their supervisor's, and nobody sees a keeper",
          "[children][supervise]") {
  run([] {
    std::vector<fiber_ref> seen;
    fiber_ref parent_seen_inside;
    const auto live = [&] {
      seen.push_back(current());
      parent_seen_inside = current().parent();
      sleep();
    };
    auto boss = spin({.name = "boss"}, [&] {
      supervise({}, child_spec{.name = "first", .make = live},
                child_spec{.name = "second", .make = live});
    });
    for (int i = 0; i < 50; ++i) {
      for (const std::string& name : names_of(boss.children())) {
        CHECK((name == "first" || name == "second"));
      }
      for (const fiber_ref& each : boss.children()) CHECK(each.parent() == boss);
      snooze();
    }
    REQUIRE(seen.size() == 2);
    CHECK(boss.children() == seen);
    CHECK(parent_seen_inside == boss);
    // One that is restarted is another fiber, the youngest now.
    seen[0].raise(std::runtime_error("down"));
    sleep_for(50ms);
    REQUIRE(seen.size() == 3);
    CHECK(boss.children() == std::vector<fiber_ref>{seen[1], seen[2]});
    CHECK(seen[0].parent() == boss);
    boss.cancel();
    CHECK_THROWS_AS(boss.await(), fiber_cancelled);
    CHECK(seen[2].parent() == boss);
  });
}

TEST_CASE("an inherited value follows a request on every way to another thread",
          "[fiber_local][inherited][thread]") {
  run_here([] {
    *request = "GET /";
    thread other([] { sleep(); });
    CHECK(other.spin([] { return *request; }).await() == "GET /");
    CHECK(other.call([] { return *request; }) == "GET /");
    promise<std::string> posted;
    other.post([&] { posted.set_value(*request); });
    CHECK(posted.get_future().get() == "GET /");
    promise<std::string> in_thread;
    thread third([&] { in_thread.set_value(*request); });
    CHECK(in_thread.get_future().get() == "GET /");

    thread_pool pool(2);
    CHECK(pool.submit([] { return *request; }).get() == "GET /");
    promise<std::string> in_pool;
    pool.post([&] { in_pool.set_value(*request); });
    CHECK(in_pool.get_future().get() == "GET /");
    strand one(pool);
    promise<std::string> in_strand;
    one.post([&] { in_strand.set_value(*request); });
    CHECK(in_strand.get_future().get() == "GET /");
    // And on from there.
    const auto further = [&other] { return other.call([] { return *request; }); };
    CHECK(pool.submit(further).get() == "GET /");
  });
}

TEST_CASE("each fiber elsewhere has a copy of its own, made where it was asked for",
          "[fiber_local][inherited][thread]") {
  run_here([] {
    *request = "first";
    thread other([] { sleep(); });
    const auto changed = other.spin([] {
      *request += ", changed";
      return *request;
    });
    *request = "second";
    CHECK(changed.await() == "first, changed");
    CHECK(*request == "second");
    // A fiber of the house that calls small functions hands nothing on to the next one.
    promise<std::string> left;
    other.post([] { *request = "of the first function"; });
    other.post([&] { left.set_value(*request); });
    CHECK(left.get_future().get() == "second");
  });
}

TEST_CASE("a copy that throws does so where the job is given, and nothing has happened",
          "[fiber_local][inherited][thread]") {
  const fiber_local<counted> value(inherited);
  run_here([&] {
    *value;
    thread other([] { sleep(); });
    thread_pool pool(1);
    bool ran = false;
    const auto run_it = [&] { ran = true; };
    counted::copies = 0;
    other.call([] {});
    CHECK(counted::copies == 1);
    CHECK(counted::copied_by == current());
    counted::throws = true;
    CHECK_THROWS_AS(other.spin(run_it), std::runtime_error);
    CHECK_THROWS_AS(other.call(run_it), std::runtime_error);
    CHECK_THROWS_AS(other.post(run_it), std::runtime_error);
    CHECK_THROWS_AS(pool.submit(run_it), std::runtime_error);
    CHECK_THROWS_AS(pool.post(run_it), std::runtime_error);
    counted::throws = false;
    CHECK(pool.stats()[0].pending == 0);
    pool.drain();
    CHECK_FALSE(ran);
    counted::copied_by = {};
  });
}
