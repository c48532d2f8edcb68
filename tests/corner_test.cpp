// SPDX-License-Identifier: MIT
// Corners of structure: groups that outlive their owner, callbacks that wait, late failures.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <motet/supervise.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

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

TEST_CASE("on_unhandled may wait, and is told of every failure", "[failures]") {
  std::vector<std::string> told;
  options chosen;
  chosen.on_unhandled = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      told.emplace_back(e.what());
    }
    sleep_for(1ms);
  };
  CHECK_THROWS_WITH(run(chosen,
                        [] {
                          spin([] { throw std::runtime_error("one"); });
                          spin([] { throw std::runtime_error("two"); });
                          throw std::runtime_error("the body");
                        }),
                    "the body");
  CHECK(told.empty());  // neither has begun
  CHECK_THROWS_WITH(run(chosen,
                        [] {
                          auto one = spin([] { throw std::runtime_error("one"); });
                          auto two = spin([] { throw std::runtime_error("two"); });
                          shield([] {
                            snooze();
                            snooze();
                          });
                          throw std::runtime_error("the body");
                        }),
                    "the body");
  CHECK(told == std::vector<std::string>{"one", "two"});
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

TEST_CASE("an attempt whose child fails while it is ended has failed, and the race goes on",
          "[race]") {
  run([] {
    const auto won = await_any(
        []() -> int {
          spin([] {
            try {
              sleep();
            } catch (const cancelled&) {
              throw std::runtime_error("the clean-up of a child");
            }
          });
          snooze();
          throw std::runtime_error("an attempt");
        },
        []() -> int {
          sleep_for(20ms);
          return 7;
        });
    CHECK(won == std::pair<std::size_t, int>(1, 7));
  });
}

TEST_CASE("a failure that a distant awaiter no longer waits for reaches the parent", "[failures]") {
  fiber_ref target;
  std::atomic<int> phase{0};
  std::thread other([&] {
    run([&] {
      while (phase < 1) std::this_thread::yield();
      CHECK_FALSE(move_on_after(10ms, [&] { target.await(); }));
      phase = 2;
      while (phase < 3) std::this_thread::yield();
    });
  });
  bool told = false;
  run([&] {
    auto child = spin([&] {
      while (phase < 2) std::this_thread::yield();  // a busy thread does not look at its mail
      throw std::runtime_error("the child's");
    });
    target = child;
    phase = 1;
    try {
      shield([&] {
        for (int i = 0; i < 100; ++i) snooze();
      });
      snooze();
    } catch (const std::runtime_error&) {
      told = true;
    }
    child = {};
    phase = 3;
  });
  other.join();
  target = {};
  CHECK(told);
}

TEST_CASE("supervise ends when somebody cancels all there is", "[supervise]") {
  run([] {
    auto boss = spin([] {
      supervise({.restarts = 0},
                child_spec{.name = "a", .restart = restart_policy::never, .make = [] { sleep(); }});
    });
    for (int i = 0; i < 3; ++i) snooze();
    for (auto& each : boss.children()) each.cancel();
    CHECK(move_on_after(10s, [&] { boss.await(); }));
  });
}

TEST_CASE("supervise ends when its children are cancelled before they could begin", "[supervise]") {
  run([] {
    auto boss = spin([] {
      supervise({.restarts = 0},
                child_spec{.name = "a", .restart = restart_policy::never, .make = [] { sleep(); }});
    });
    while (boss.children().empty()) snooze();
    for (auto& each : boss.children()) each.cancel();
    CHECK(move_on_after(10s, [&] { boss.await(); }));
  });
}

TEST_CASE("a grace without end is one", "[grace]") {
  options chosen;
  chosen.handler_grace = std::chrono::milliseconds::max();
  run(chosen, [] {
    bool waited = false;
    auto worker = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(10ms);
        waited = true;
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(waited);
  });
}

TEST_CASE("the grace of a handler begins in the handler", "[grace]") {
  options chosen;
  chosen.handler_grace = 50ms;
  run(chosen, [] {
    bool waited = false;
    struct slow {
      ~slow() { sleep_for(100ms); }
    };
    auto worker = spin([&] {
      try {
        const slow unwinding;
        sleep();
      } catch (const cancelled&) {
        sleep_for(5ms);
        waited = true;
      }
    });
    snooze();
    worker.cancel();
    worker.await();
    CHECK(waited);
  });
}

TEST_CASE("a cancelled fiber can spin into no group, its own or another's", "[cancel]") {
  run([] {
    group open;
    bool ran = false;
    bool refused = false;
    spin([&] {
      current().cancel();
      try {
        open.spin([&] { ran = true; });
      } catch (const cancelled&) {
        refused = true;
      }
    }).await();
    open.await_all();
    CHECK(refused);
    CHECK_FALSE(ran);
  });
}

TEST_CASE("on_notice may wait, also when it is told of a deadlock", "[deadlock]") {
  if (testing::on_sim()) return;  // virtual time does not wait for other threads
  bool noticed = false;
  options chosen;
  chosen.deadlock_report = 20ms;
  chosen.on_notice = [&](std::string_view) {
    sleep_for(1ms);
    noticed = true;
  };
  std::thread other;
  run(chosen, [&] {
    const fiber_ref waiting = spin([] { suspend<int>(); });
    other = std::thread([waiting] {
      std::this_thread::sleep_for(300ms);
      waiting.cancel();
    });
    CHECK_THROWS_AS(waiting.await(), fiber_cancelled);
  });
  other.join();
  CHECK(noticed);
}

TEST_CASE("a child process leaves the scopes that its caller was in", "[fork]") {
  if (testing::under_tsan) return;
  run([] {
    std::stop_source never;
    const auto fork_inside = [&](auto self, int depth) -> void {
      if (depth > 0) {
        move_on_when_stopped(never.get_token(), [&] { self(self, depth - 1); });
        return;
      }
      const pid_t child = ::fork();
      if (child == 0) {
        bool fine = true;
        for (int i = 0; i < 8; ++i) fine = fine && move_on_after(1h, [] { snooze(); });
        ::_exit(fine ? 0 : 1);
      }
      int status = -1;
      ::waitpid(child, &status, 0);
      CHECK(status == 0);
    };
    fork_inside(fork_inside, 6);
  });
}
