// SPDX-License-Identifier: MIT
// What is asked of a fiber by other threads: exceptions, cancellations, stops and tokens.
#include <array>
#include <atomic>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "strangers.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::box;
using testing::distant;
using testing::first_error;
using testing::outcome_of;
using testing::strangers;
using testing::words;
using testing::among_strangers::run_here;

namespace {

/// Sleeps when it is destroyed, and says which fiber did so and whether it had its sleep.
struct slow_to_go {
  slow_to_go(std::atomic<int>& count, fiber_ref& sleeper)
      : whole_sleeps(&count), destroyer(&sleeper) {}
  slow_to_go(slow_to_go&& other) noexcept
      : whole_sleeps(std::exchange(other.whole_sleeps, nullptr)), destroyer(other.destroyer) {}
  slow_to_go& operator=(slow_to_go&&) = delete;
  ~slow_to_go() {
    if (whole_sleeps == nullptr) return;
    *destroyer = current();
    const auto start = clock::now();
    std::error_code error;
    sleep_for(5ms);
    if (clock::now() - start >= 5ms) ++*whole_sleeps;
  }
  std::atomic<int>* whole_sleeps;
  fiber_ref* destroyer;
};

}  // namespace

TEST_CASE("remote calls: a thread's requests are executed in order", "[schedule]") {
  run_here([] {
    std::vector<int> order;
    const auto note_turn = [&](int number) {
      suspend();
      order.push_back(number);
    };
    const auto first = spin([&] { note_turn(1); });
    const auto second = spin([&] { note_turn(2); });
    const auto third = spin([&] { note_turn(3); });
    snooze();          // all three wait
    std::thread([&] {  // this thread looks at its mail when all is there
      first.schedule();
      second.schedule();
      third.schedule();
    })
        .join();
    await_all(first, second, third);
    CHECK(order == std::vector<int>{1, 2, 3});
  });
}

TEST_CASE("fiber::raise() from another thread interrupts any wait", "[raise]") {
  run_here([] {
    auto ends = testing::make_pipe();
    words trace;
    const auto record = [&trace](auto wait) {
      try {
        wait();
      } catch (const first_error& error) {
        trace.emplace_back(error.what());
      }
    };
    const std::array<fiber<void>, 3> waiters{spin([&] { record([] { sleep(); }); }),
                                             spin([&] { record([] { (void)suspend<int>(); }); }),
                                             spin([&] {
                                               record([&] {
                                                 std::array<std::byte, 1> buffer;
                                                 io::read(ends.first(), buffer);
                                               });
                                             })};
    sleep_for(1ms);
    std::array<bool, 3> raised{};
    strangers threads;
    threads.start([&] {
      for (std::size_t i = 0; i < waiters.size(); ++i) raised[i] = waiters[i].raise(first_error());
    });
    for (const auto& waiter : waiters) waiter.await();
    threads.join();
    CHECK(raised == std::array<bool, 3>{true, true, true});
    CHECK(trace == words{"first", "first", "first"});
  });
}

TEST_CASE("fiber::raise() from another thread twice delivers one exception first, and none twice",
          "[raise]") {
  run_here([] {
    for (std::size_t round = 0; round < testing::scaled(1'000, 100); ++round) {
      int deliveries = 0;
      auto f = spin([&] {
        for (;;) {
          try {
            sleep();
          } catch (const first_error&) {
            ++deliveries;
          }
        }
      });
      snooze();  // raised in before it has begun, it would not begin
      std::atomic<int> accepted{0};
      strangers threads;
      for (int i = 0; i < 2; ++i) {
        threads.start([&] { accepted += f.raise(first_error()) ? 1 : 0; });
      }
      while (deliveries == 0) snooze();
      threads.join();
      for (int i = 0; i < 40; ++i) snooze();
      f.cancel();
      CHECK_THROWS_AS(f.await(), fiber_cancelled);
      CHECK(deliveries >= 1);
      CHECK(deliveries <= accepted);
    }
  });
}

TEST_CASE("fiber::cancel() and stop() from another thread are accepted once", "[cancel]") {
  distant<int> f([] { return spin([]() -> int { sleep(); }); });
  distant<int> g([] { return spin([]() -> int { sleep(); }); });
  CHECK(f.handle.stop(11) == cancel_result::accepted);
  const cancel_result again = f.handle.stop(12);
  CHECK(again != cancel_result::accepted);
  CHECK(f.handle.await() == 11);
  CHECK(f.handle.cancel() == cancel_result::finished);
  CHECK(g.handle.cancel("first") == cancel_result::accepted);
  CHECK(g.handle.stop(12) != cancel_result::accepted);
  CHECK(outcome_of([&] { return g.handle.await(); }) == "first");
}

TEST_CASE("fiber::cancel() from another thread ends an unstarted fiber without running it",
          "[cancel]") {
  run_here([] {
    bool ran = false;
    auto f = spin([&] { ran = true; });
    std::thread([&] { f.cancel("never mind"); }).join();
    // The request is there before the fiber's first turn only if the thread looks: it must, but
    // may run the fiber first. Either way awaiting tells the truth.
    try {
      f.await();
      CHECK(ran);
    } catch (const fiber_cancelled&) {
      CHECK(!ran);
    }
  });
}

TEST_CASE("fiber::schedule() from another thread passes tokens in order, or the latest one",
          "[schedule]") {
  distant<std::string> f([] {
    return spin([] {
      std::string letters;
      for (;;) {
        const std::string next = suspend<std::string>();
        letters += next;
        if (next == ".") return letters;
      }
    });
  });
  for (const char* part : {"a", "b", "c"}) CHECK(f.handle.schedule(std::string(part)));
  CHECK(f.handle.schedule(std::string(".")));
  const std::string text = f.handle.await();
  std::size_t place = 0;
  for (const char letter : std::string("abc.")) {
    if (place < text.size() && text[place] == letter) ++place;
  }
  CHECK(place == text.size());  // some may have been replaced, none came twice or out of order
  CHECK(text.back() == '.');
  CHECK(!f.handle.schedule(std::string("late")));
}

TEST_CASE("fiber::schedule() from another thread accepts move-only and large tokens",
          "[schedule]") {
  struct counted {
    explicit counted(std::atomic<int>& counter) : alive(&counter) { ++*alive; }
    counted(counted&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
    counted& operator=(counted&&) = delete;
    ~counted() {
      if (alive != nullptr) --*alive;
    }
    std::atomic<int>* alive;
    std::array<int, 20> load{};
  };
  std::atomic<int> alive{0};
  {
    distant<int> f([] {
      return spin([] {
        const auto token = suspend<counted>();
        return token.alive->load() > 0 ? 1 : 0;
      });
    });
    for (int i = 0; i < 20; ++i) f.handle.schedule(counted(alive));
    CHECK(f.handle.await() == 1);
    f.handle.schedule(counted(alive));
  }
  CHECK(alive == 0);
}

TEST_CASE("fiber::schedule() from another thread never wakes a sleep", "[schedule]") {
  distant<int> f([] {
    return spin([] {
      const auto start = clock::now();
      sleep_for(10ms);
      const bool slept = clock::now() - start >= 10ms;
      return suspend<int>() + (slept ? 1 : 0);
    });
  });
  f.handle.schedule(40);
  CHECK(f.handle.await() == 41);
}

TEST_CASE("fiber::stop() from another thread loses no earlier token", "[cancel]") {
  run_here([] {
    auto neighbour = spin([] { sleep(); });
    auto f = spin([] {
      // The token is a handle to a fiber of the same thread: to drop it takes that thread's lock.
      const auto token = suspend<fiber_ref>();
      sleep();
      return token ? 1 : 0;
    });
    snooze();
    std::thread([&, token = fiber_ref(neighbour)]() mutable {
      f.schedule(std::move(token));
      f.schedule(fiber_ref(neighbour));  // displaces the first
      CHECK(f.stop(5) == cancel_result::accepted);
    }).join();
    CHECK(f.await() == 5);
    neighbour.cancel();
  });
}

TEST_CASE("fiber: requests from another thread take effect in their order", "[cancel][resumer]") {
  run_here([] {
    std::optional<resumer<int>> answer;
    words trace;
    auto f = spin([&] {
      trace.push_back(std::to_string(
          suspend_with<int>([&](resumer<int> handle) { answer.emplace(std::move(handle)); })));
      try {
        sleep();
      } catch (const first_error& raised) {
        trace.emplace_back(raised.what());
      }
      suspend();
      trace.emplace_back("token");
      sleep();
    });
    snooze();
    std::thread([&] {
      (*answer)(42);
      f.raise(first_error());
    }).join();
    while (trace.size() < 2) snooze();
    snooze();
    std::thread([&] {
      f.schedule();
      f.cancel();
    }).join();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(trace == words{"42", "first", "token"});
  });
}

TEST_CASE("fiber: objects that a polling thread must destroy are destroyed by a separate fiber",
          "[handle]") {
  std::atomic<int> whole_sleeps{0};
  fiber_ref destroyer;
  run_here([&] {
    auto result = spin([&] { return slow_to_go(whole_sleeps, destroyer); });
    while (result.state() != fiber_state::dead) snooze();
    const auto start = clock::now();
    std::thread dropping([result = std::move(result)]() mutable {
      std::this_thread::sleep_for(5ms);
      result = {};
    });
    sleep_for(20ms);
    CHECK(clock::now() - start >= 20ms);
    dropping.join();
    while (whole_sleeps == 0) sleep_for(1ms);
    CHECK_FALSE(destroyer == current());

    // A token that comes too late.
    destroyer = {};
    auto listener = spin([] { suspend<int>(); });
    snooze();
    std::thread([&] {
      listener.schedule(slow_to_go(whole_sleeps, destroyer));
      listener.schedule(1);
    }).join();
    listener.await();
  });
  run_here([&] {
    // One that nobody takes, found as the runtime ends.
    whole_sleeps = 0;
    auto deaf = spin([] { sleep(); });
    snooze();
    std::thread([&] { deaf.schedule(slow_to_go(whole_sleeps, destroyer)); }).join();
  });
  CHECK(whole_sleeps == 1);
  destroyer = {};
}

TEST_CASE("fiber: a result without a handle is destroyed by the fiber that returned it",
          "[handle]") {
  std::atomic<int> whole_sleeps{0};
  fiber_ref destroyer;
  run_here([&] {
    std::uint64_t id = 0;
    spin([&] {
      id = current().id();
      return slow_to_go(whole_sleeps, destroyer);
    });
    while (whole_sleeps == 0) sleep_for(1ms);
    CHECK(destroyer.id() == id);
    destroyer = {};
  });
}

TEST_CASE("fiber::stop() too late leaves no value for suspend()", "[cancel]") {
  run_here([] {
    auto f = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
        return suspend<int>();  // a handler may wait
      }
    });
    snooze();
    f.cancel();
    snooze();
    std::thread([&] { f.stop(7); }).join();
    sleep_for(1ms);
    CHECK(f.state() == fiber_state::waiting);
    f.schedule(8);
    CHECK(f.await() == 8);
  });
}

TEST_CASE("fiber::schedule() passes a token between two threads", "[schedule][stress]") {
  const auto rounds = static_cast<int>(testing::scaled(100'000, 3'000));
  distant<int> echo([rounds] {
    return spin([rounds] {
      int last = 0;
      while (last < rounds) {
        auto [number, back] = suspend<std::pair<int, fiber_ref>>();
        last = number;
        back.schedule(number);
      }
      return last;
    });
  });
  int sum = 0;
  run_here([&] {
    for (int i = 1; i <= rounds; ++i) {
      echo.handle.schedule(std::pair(i, current()));
      sum += suspend<int>() == i ? 1 : 0;
    }
  });
  CHECK(sum == rounds);
  CHECK(echo.handle.await() == rounds);
}

TEST_CASE("fiber: requests from other threads are safe for fibers that start and end", "[stress]") {
  const auto requests = testing::scaled(100'000, 4'000);
  constexpr int threads = 3;
  run_here([&] {
    box<fiber<int>> mailbox;
    std::atomic<std::size_t> total{0};
    std::atomic<bool> finished{false};
    strangers senders;
    for (int i = 0; i < threads; ++i) {
      senders.start([&] {
        while (!finished) {
          auto next = mailbox.take();
          if (!next) {
            std::this_thread::yield();
            continue;
          }
          switch (total++ % 5) {
            case 0:
              next->raise(first_error());
              break;
            case 1:
              next->schedule(1);
              break;
            case 2:
              next->cancel();
              break;
            case 3:
              next->stop(2);
              break;
            default:
              next->raise(first_error());
              next->schedule(1);
              next->cancel();
          }
          if (total % 3 == 0) mailbox.put(std::move(*next));
        }
      });
    }
    std::size_t ends = 0;
    std::size_t spun = 0;
    group crowd;
    while (total < requests) {
      if (crowd.size() < 50) {
        mailbox.put(crowd.spin([&, number = ++spun]() -> int {
          struct count {
            std::size_t& target;
            ~count() { ++target; }
          } const at_end{ends};
          try {
            switch (number % 3) {
              case 0:
                sleep_for(1ms);
                return 0;
              case 1:
                return suspend<int>();
              default:
                for (int i = 0; i < 5; ++i) snooze();
                return 0;
            }
          } catch (const first_error&) {
            return -1;
          }
        }));
      }
      try {
        snooze();
      } catch (const first_error&) {  // of one that had not started
      }
    }
    finished = true;
    senders.join();
    crowd.cancel();
    while (crowd.size() > 0) {
      try {
        crowd.await_all();
      } catch (const first_error&) {
      }
    }
    CHECK(ends <= spun);
    CHECK(current().children().empty());
  });
}
