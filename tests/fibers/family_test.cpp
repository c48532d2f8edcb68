// SPDX-License-Identifier: MIT
// Parents and children: who is whose, as everybody sees it, and who ends first.
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "quiet.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::note;
using testing::run_here;
using testing::settle;
using testing::words;

namespace {

std::vector<std::string> names_of(const std::vector<fiber_ref>& fibers) {
  std::vector<std::string> names;
  for (const fiber_ref& child : fibers) names.push_back(child.name());
  return names;
}

}  // namespace

TEST_CASE("fiber::parent() is the spinning fiber until the child is dead", "[family]") {
  run([] {
    CHECK(!current().parent());
    auto parent = spin([] {
      const fiber_ref me = current();
      auto a = spin([] { sleep_for(1ms); });
      group members;
      auto b = members.spin([] { suspend(); });
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

TEST_CASE("fiber::children() lists the oldest child first", "[family]") {
  run([] {
    std::vector<fiber_ref> spun;
    for (int i = 0; i < 5; ++i) spun.push_back(spin([] { sleep(); }));
    CHECK(current().children() == spun);
  });
}

TEST_CASE("fiber: a parent cancels its children when its body ends, and dies after them",
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

TEST_CASE("fiber: the leaves of a family end first, and captures after the children", "[family]") {
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

TEST_CASE("fiber::cancel() unwinds the parent first, then its children, oldest first", "[family]") {
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

TEST_CASE("fiber: a parent waits for a child that blocks while it ends", "[family]") {
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

TEST_CASE("spin() throws cancelled in a fiber whose body has ended, and runs nothing", "[family]") {
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

TEST_CASE("fiber: thousands of generations end, and the last handle frees them", "[family][deep]") {
  const auto generations = static_cast<int>(testing::scaled(10'000, 2'000));
  run([&] {
    int ends = 0;
    fiber_ref last;
    struct tree {
      int& ends;
      fiber_ref& last;
      void grow(int generations) const {
        if (generations == 0) {
          last = current();
        } else {
          spin([*this, generations] {
            grow(generations - 1);
            ++ends;
          });
          snooze();
          snooze();
        }
      }
    };
    auto root = spin([&] {
      tree{ends, last}.grow(generations);
      while (!last) snooze();
    });
    root.await();
    CHECK(last.state() == fiber_state::dead);
    auto forgetter = spin([chain = std::exchange(last, {})]() mutable { chain = {}; });
    root = {};
    forgetter.await();
  });
}

TEST_CASE("fiber: a parent may end a transient child in a read without a deadlock", "[structure]") {
  const auto pipe = testing::make_pipe();
  run([&] {
    auto parent = spin([&] {
      spin({.transient = true}, [&] {
        std::byte byte{};
        io::read(pipe.first(), {&byte, 1});
      });
      snooze();
    });
    parent.await();
  });
}

TEST_CASE("fiber::children() lists children by age, members of groups included", "[children]") {
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

TEST_CASE("fiber::children() lists a child on another thread by age, and never its proxy",
          "[children]") {
  run_here([] {
    thread worker([] { sleep(); });
    const auto wait = [] { sleep(); };
    const auto a = spin({.name = "a"}, wait);
    const auto b = worker.spin(wait);
    const auto c = spin({.name = "c"}, wait);
    CHECK(current().children() == std::vector<fiber_ref>{a, b, c});
    CHECK(b.parent() == current());
    auto spinning = spin([&] {
      worker.spin(wait);
      sleep();
    });
    for (int i = 0; i < 20; ++i) {
      for (const fiber_ref& child : spinning.children()) CHECK(child.name() != "proxy");
      snooze();
    }
  });
}

TEST_CASE("fiber::children() does not list a dead child on another thread", "[children]") {
  run_here([] {
    thread worker([] { sleep(); });
    event go;
    const auto child = worker.spin([&] { go.wait(); });
    CHECK(current().children() == std::vector<fiber_ref>{child});
    go.set();
    while (child.state() != fiber_state::dead) std::this_thread::yield();
    // There was no switchpoint, so its proxy is there yet.
    CHECK(current().children().empty());
  });
}

TEST_CASE("supervise() owns its children, and children() lists no proxy", "[children][supervise]") {
  run([] {
    std::vector<fiber_ref> listed;
    fiber_ref parent_seen_inside;
    const auto live = [&] {
      listed.push_back(current());
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
      for (const fiber_ref& child : boss.children()) CHECK(child.parent() == boss);
      snooze();
    }
    REQUIRE(listed.size() == 2);
    CHECK(boss.children() == listed);
    CHECK(parent_seen_inside == boss);
    // One that is restarted is another fiber, the youngest now.
    listed[0].raise(std::runtime_error("down"));
    sleep_for(50ms);
    REQUIRE(listed.size() == 3);
    CHECK(boss.children() == std::vector<fiber_ref>{listed[1], listed[2]});
    CHECK(listed[0].parent() == boss);
    boss.cancel();
    CHECK_THROWS_AS(boss.await(), fiber_cancelled);
    CHECK(listed[2].parent() == boss);
  });
}
