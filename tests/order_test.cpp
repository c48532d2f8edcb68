// SPDX-License-Identifier: MIT
// Who runs when: states, the queue, tokens, polls while busy, and what happens when all wait.
#include <unistd.h>

#include <array>
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;
using numbers = std::vector<int>;

/// Far more than any of these tests takes; only a defect lets it pass.
bool patient(std::chrono::steady_clock::time_point since) {
  return std::chrono::steady_clock::now() - since < 5s;
}

void compute_for(std::chrono::steady_clock::duration span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// What a main fiber is told that waits for what nobody is left to bring about.
template <typename Wait>
std::string report_of(Wait wait) {
  try {
    wait();
  } catch (const deadlock& report) {
    return report.what();
  }
  return "no deadlock";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct counted {
  explicit counted(int& of) : alive(&of) { ++*alive; }
  counted(counted&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
  counted& operator=(counted&&) = delete;
  ~counted() {
    if (alive != nullptr) --*alive;
  }
  int* alive;
};

struct large {
  explicit large(int number) { values.fill(number); }
  std::array<int, 50> values;
};

}  // namespace

// The deadlocks come first: they are seen only while the process has no other thread.

TEST_CASE("main is told that it waits for a value that nobody is left to give", "[deadlock]") {
  run([] {
    const std::string report = report_of([] { (void)suspend<int>(); });
    CHECK(mentions(report, "suspend"));
    sleep_for(1ms);  // the thread lives on
    auto f = spin([] { return 1; });
    CHECK(f.await() == 1);
  });
}

TEST_CASE("the report of a deadlock names who waits on what, and where it was spun", "[deadlock]") {
  run([] {
    auto a = spin({.name = "alto"}, [] { suspend(); });
    auto b = spin({.name = "bass"}, [&] { a.await(); });
    const std::string report = report_of([&] { b.await(); });
    CHECK(mentions(report, "alto"));
    CHECK(mentions(report, "bass"));
    CHECK(mentions(report, "await of fiber " + std::to_string(a.id())));
    CHECK(mentions(report, "await of fiber " + std::to_string(b.id())));
    CHECK(mentions(report, "suspend"));
    CHECK(mentions(report, "order_test.cpp"));
    CHECK(b.state() == fiber_state::waiting);
  });
}

TEST_CASE("fibers that await each other are a deadlock of the main fiber that awaits them",
          "[deadlock]") {
  run([] {
    fiber<void> a, b;
    a = spin([&] { b.await(); });
    b = spin([&] { a.await(); });
    CHECK_THROWS_AS(a.await(), deadlock);
    a.cancel();
    CHECK_THROWS_AS(a.await(), fiber_cancelled);
    // b has been told, too: what it awaited was cancelled, and that is a failure of b.
    CHECK_THROWS_AS(b.await(), fiber_cancelled);
  });
}

TEST_CASE("main awaiting a group of which every fiber waits is a deadlock", "[deadlock]") {
  run([] {
    group voices;
    voices.spin({.name = "tenor"}, [] { sleep(); });
    const std::string report = report_of([&] { voices.await_all(); });
    CHECK(mentions(report, "tenor"));
    CHECK(voices.size() == 1);
  });
}

TEST_CASE("main waiting for a resumer that it keeps itself is a deadlock, each time",
          "[deadlock]") {
  run([] {
    std::vector<resumer<int>> kept;
    for (int round = 0; round < 3; ++round) {
      CHECK_THROWS_AS(suspend_with<int>([&](resumer<int> r) { kept.push_back(std::move(r)); }),
                      deadlock);
    }
  });
}

TEST_CASE("a pending timer is no deadlock", "[deadlock]") {
  run([] {
    auto f = spin([main = current()] {
      sleep_for(5ms);
      main.schedule(7);
    });
    CHECK(suspend<int>() == 7);
  });
}

TEST_CASE("a deadline of main's own wait is no deadlock", "[deadlock]") {
  run([] { CHECK(!move_on_after(5ms, [] { return suspend<int>(); })); });
}

TEST_CASE("what a transient fiber sleeps for does not keep main from a deadlock", "[deadlock]") {
  run([] {
    spin({.name = "metronome", .transient = true}, [] {
      for (;;) sleep_for(1h);
    });
    CHECK_THROWS_AS(suspend<int>(), deadlock);
  });
}

TEST_CASE("suspend in main returns when nothing is left that could wake a fiber", "[suspend]") {
  run([] {
    suspend();
    numbers seen;
    for (int i = 1; i <= 3; ++i) spin([&seen, i] { seen.push_back(i); });
    suspend();
    suspend();
    CHECK(seen == numbers{1, 2, 3});
  });
}

TEST_CASE("suspend in main waits for sleepers, but not for who waits for ever", "[suspend]") {
  run([] {
    numbers seen;
    auto for_ever = spin([&] {
      suspend();
      seen.push_back(-1);
    });
    for (int i : {3, 1, 2}) {
      spin([&seen, i] {
        sleep_for(i * 2ms);
        seen.push_back(i);
      });
    }
    suspend();
    CHECK(seen == numbers{1, 2, 3});
    CHECK(for_ever.state() == fiber_state::waiting);
  });
}

TEST_CASE("suspend in main waits for a pending read", "[suspend]") {
  run([] {
    auto ends = testing::make_pipe();
    std::string got;
    auto reader = spin([&] {
      std::array<std::byte, 8> buffer;
      got = testing::text_of(std::span(buffer).first(io::read(ends.first(), buffer)));
    });
    spin([&] {
      sleep_for(2ms);
      io::write(ends.second(), testing::bytes_of("x"));
    });
    suspend();
    CHECK(got == "x");
    CHECK(reader.state() == fiber_state::dead);
  });
}

TEST_CASE("a fiber is runnable, running, waiting and in the end dead", "[state]") {
  run([] {
    int turns = 0;
    auto f = spin([&turns] {
      const fiber_ref me = current();
      for (int i = 0; i < 3; ++i) {
        CHECK(me.state() == fiber_state::running);
        snooze();
        ++turns;
      }
      suspend();
    });
    CHECK(f.state() == fiber_state::runnable);
    CHECK(current().state() == fiber_state::running);
    snooze();
    CHECK(f.state() == fiber_state::runnable);
    CHECK(turns == 0);
    while (turns < 3) snooze();
    CHECK(f.state() == fiber_state::waiting);
    f.stop();
    CHECK(f.state() == fiber_state::runnable);
    snooze();
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("the main fiber waits like any other", "[state]") {
  run([] {
    const fiber_ref main = current();
    auto f = spin([main] { return main.state(); });
    CHECK(f.await() == fiber_state::waiting);
    auto g = spin([main] { return main.state(); });
    snooze();
    CHECK(g.await() == fiber_state::runnable);
  });
}

TEST_CASE("spin never runs a fiber at once", "[order]") {
  run([] {
    words trace;
    auto outer = spin([&] {
      spin([&] { trace.emplace_back("inner"); });
      trace.emplace_back("spun");
      snooze();
      trace.emplace_back("outer");
    });
    CHECK(trace.empty());
    outer.await();
    CHECK(trace == words{"spun", "inner", "outer"});
  });
}

TEST_CASE("fibers run in the order in which they were spun", "[order]") {
  run([] {
    numbers seen, expected;
    for (int i = 0; i < 1000; ++i) {
      spin([&seen, i] { seen.push_back(i); });
      expected.push_back(i);
    }
    snooze();
    CHECK(seen == expected);
  });
}

TEST_CASE("snooze goes behind everybody who is runnable", "[order]") {
  run([] {
    words trace;
    spin([&] {
      trace.emplace_back("a");
      snooze();
      trace.emplace_back("a");
    });
    spin([&] { trace.emplace_back("b"); });
    spin([&] { trace.emplace_back("c"); });
    suspend();
    CHECK(trace == words{"a", "b", "c", "a"});
  });
}

TEST_CASE("a fiber spun by a fiber stands behind those that snoozed before", "[order]") {
  run([] {
    words trace;
    spin([&] {
      trace.emplace_back("a");
      snooze();
      trace.emplace_back("a again");
    });
    spin([&] {
      trace.emplace_back("b");
      spin([&] { trace.emplace_back("c"); });
      snooze();
      trace.emplace_back("b again");
    });
    suspend();
    CHECK(trace == words{"a", "b", "a again", "c", "b again"});
  });
}

TEST_CASE("a suspended fiber runs only when it has been scheduled", "[order]") {
  run([] {
    numbers seen;
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(spin([&seen, i] {
        suspend();
        seen.push_back(i);
      }));
    }
    snooze();
    CHECK(fibers[0].schedule());
    CHECK(seen.empty());
    snooze();
    CHECK(seen == numbers{0});
    CHECK(fibers[0].state() == fiber_state::dead);
    fibers[1].schedule();
    fibers[2].schedule();
    snooze();
    CHECK(seen == numbers{0, 1, 2});
  });
}

TEST_CASE("scheduling is not switching, and keeps the order of the calls", "[order]") {
  run([] {
    words trace;
    std::vector<fiber<void>> fibers;
    for (const char* name : {"a", "b", "c"}) {
      fibers.push_back(spin([&trace, name] {
        suspend();
        trace.emplace_back(name);
      }));
    }
    snooze();
    fibers[2].schedule();
    fibers[0].schedule();
    fibers[1].schedule();
    trace.emplace_back("main");
    suspend();
    CHECK(trace == words{"main", "c", "a", "b"});
  });
}

TEST_CASE("a second schedule replaces the value, not the place in the queue", "[token]") {
  run([] {
    words trace;
    auto wait = [&trace](const char* name) {
      trace.push_back(name + std::to_string(suspend<int>()));
    };
    auto a = spin([&] { wait("a"); });
    auto b = spin([&] { wait("b"); });
    snooze();
    CHECK(a.schedule(1));
    CHECK(b.schedule(2));
    CHECK(a.schedule(3));
    suspend();
    CHECK(trace == words{"a3", "b2"});
  });
}

TEST_CASE("a fiber scheduled many times runs once", "[token]") {
  run([] {
    int turns = 0;
    auto f = spin([&] {
      for (;;) {
        suspend();
        ++turns;
      }
    });
    snooze();
    for (int i = 0; i < 10; ++i) f.schedule();
    suspend();
    CHECK(turns == 1);
  });
}

TEST_CASE("a token given before suspend is kept for it, the last one alone", "[token]") {
  run([] {
    auto f = spin([] {
      snooze();
      const int first = suspend<int>();
      const int second = suspend<int>();
      return std::pair(first, second);
    });
    f.schedule(1);
    f.schedule(2);
    while (f.state() != fiber_state::waiting) snooze();
    CHECK(f.schedule(3));
    CHECK(f.await() == std::pair(2, 3));
  });
}

TEST_CASE("an exception takes the place of a token that was not yet seen", "[token]") {
  run([] {
    for (const bool early : {false, true}) {
      auto f = spin([] { return suspend<int>(); });
      if (early) f.schedule(1);
      snooze();
      if (!early) f.schedule(1);
      f.raise(std::runtime_error("instead"));
      CHECK_THROWS_WITH(f.await(), "instead");
    }
  });
}

TEST_CASE("suspend is a switchpoint also when its token is there already", "[token]") {
  run([] {
    words trace;
    auto f = spin([&] {
      trace.emplace_back("before");
      suspend();
      trace.emplace_back("after");
    });
    f.schedule();
    spin([&] { trace.emplace_back("other"); });
    suspend();
    CHECK(trace == words{"before", "other", "after"});
  });
}

TEST_CASE("a token of another type is a logic error in suspend, and nothing more", "[token]") {
  run([] {
    auto f = spin([] {
      CHECK_THROWS_AS(suspend<int>(), std::logic_error);
      CHECK_THROWS_AS(suspend<std::string>(), std::logic_error);
      CHECK_THROWS_AS(suspend(), std::logic_error);
      return suspend<int>();
    });
    snooze();
    f.schedule(1.5);
    snooze();
    f.schedule();
    snooze();
    f.schedule(std::string("x"));
    snooze();
    f.schedule(9);
    CHECK(f.await() == 9);
  });
}

TEST_CASE("a token may be move-only, and larger than its place", "[token]") {
  run([] {
    auto f = spin([] {
      const auto pointer = suspend<std::unique_ptr<int>>();
      const large many = suspend<large>();
      return *pointer + many.values[0] + many.values[49];
    });
    snooze();
    f.schedule(std::make_unique<int>(1));
    snooze();
    f.schedule(large(10));
    CHECK(f.await() == 21);
  });
}

TEST_CASE("every token is destroyed once, taken or not", "[token]") {
  int alive = 0;
  run([&] {
    auto taker = spin([] {
      const auto taken = suspend<counted>();
      return *taken.alive;
    });
    taker.schedule(counted(alive));
    taker.schedule(counted(alive));
    CHECK(alive == 1);
    CHECK(taker.await() == 1);
    CHECK(alive == 0);
    auto idle = spin([] { sleep(); });
    snooze();
    idle.schedule(counted(alive));
    auto dead = spin([] {});
    dead.await();
    CHECK(!dead.schedule(counted(alive)));
    CHECK(alive == 1);
  });
  CHECK(alive == 0);
}

TEST_CASE("a token never wakes a sleep; it waits for the next suspend", "[token]") {
  run([] {
    const auto start = clock::now();
    auto f = spin([start] {
      sleep_for(10ms);
      CHECK(clock::now() - start >= 10ms);
      return suspend<int>();
    });
    snooze();
    CHECK(f.schedule(5));
    CHECK(f.state() == fiber_state::waiting);
    CHECK(f.await() == 5);
  });
}

TEST_CASE("a token never wakes a read", "[token]") {
  run([] {
    auto ends = testing::make_pipe();
    auto f = spin([&] {
      std::array<std::byte, 4> buffer;
      const std::size_t got = io::read(ends.first(), buffer);
      return std::pair(got, suspend<int>());
    });
    snooze();
    CHECK(f.schedule(5));
    sleep_for(2ms);
    CHECK(f.state() == fiber_state::waiting);
    io::write(ends.second(), testing::bytes_of("abc"));
    CHECK(f.await() == std::pair(std::size_t{3}, 5));
  });
}

TEST_CASE("a token never wakes an await, a group or a suspend_with", "[token]") {
  run([] {
    auto slow = spin([] { sleep_for(5ms); });
    auto awaiting = spin([&] {
      slow.await();
      CHECK(slow.state() == fiber_state::dead);
      return suspend<int>();
    });
    auto grouping = spin([] {
      bool over = false;
      group one;
      one.spin([&] {
        sleep_for(5ms);
        over = true;
      });
      one.await_all();
      CHECK(over);
      return suspend<int>();
    });
    std::optional<resumer<int>> kept;
    auto resumed = spin([&] {
      const int given = suspend_with<int>([&](resumer<int> r) { kept.emplace(std::move(r)); });
      return 10 * given + suspend<int>();
    });
    snooze();
    for (const fiber_ref& each : {fiber_ref(awaiting), fiber_ref(grouping), fiber_ref(resumed)}) {
      CHECK(each.schedule(1));
      CHECK(each.state() == fiber_state::waiting);
    }
    (*kept)(4);
    CHECK(awaiting.await() == 1);
    CHECK(grouping.await() == 1);
    CHECK(resumed.await() == 41);
  });
}

TEST_CASE("scheduling oneself is a logic error, before anything has happened", "[token]") {
  run([] {
    CHECK_THROWS_AS(current().schedule(), std::logic_error);
    CHECK_THROWS_AS(current().schedule(1), std::logic_error);
    auto f = spin([] {
      CHECK_THROWS_AS(current().schedule(1), std::logic_error);
      return suspend<int>();
    });
    snooze();
    CHECK(f.state() == fiber_state::waiting);
    f.schedule(2);
    CHECK(f.await() == 2);
    suspend();
  });
}

TEST_CASE("scheduling a dead fiber resumes nobody", "[token]") {
  run([] {
    auto dead = spin([] { return 1; });
    dead.await();
    bool scheduled = true;
    spin([&] { scheduled = dead.schedule(2); });
    const auto start = clock::now();
    sleep_for(5ms);
    CHECK(clock::now() - start >= 5ms);
    CHECK(!scheduled);
    CHECK(dead.await() == 1);
  });
}

TEST_CASE("an empty handle is a logic error to use, and false", "[handle]") {
  const fiber_ref none;
  CHECK(!none);
  CHECK_THROWS_AS(none.state(), std::logic_error);
  CHECK_THROWS_AS(none.schedule(), std::logic_error);
  CHECK_THROWS_AS(none.raise(std::runtime_error("x")), std::logic_error);
  CHECK_THROWS_AS(none.cancel(), std::logic_error);
  CHECK_THROWS_AS(none.await(), std::logic_error);
}

TEST_CASE("fibers have names, numbers of their own, a home and a time of birth", "[handle]") {
  run([] {
    const auto before = clock::now();
    auto a = spin({.name = "alto"}, [] { return current().id(); });
    auto b = spin([] { return current().id(); });
    CHECK(a.name() == "alto");
    CHECK(b.name().empty());
    CHECK(a.id() != b.id());
    CHECK(a.id() != current().id());
    CHECK(a.await() == a.id());
    CHECK(b.await() == b.id());
    CHECK(a.home() == std::this_thread::get_id());
    CHECK(a.spun_at() <= clock::now());
    CHECK(a.spun_at() > before - 1min);
    CHECK(fiber_ref(a) == fiber_ref(a));
    CHECK(!(fiber_ref(a) == fiber_ref(b)));
  });
}

TEST_CASE("whoever awaits runs after the fiber, and gets its value", "[await]") {
  run([] {
    words trace;
    auto a = spin([&]() -> std::string {
      trace.emplace_back("a1");
      snooze();
      trace.emplace_back("a2");
      return "ra";
    });
    auto b = spin([&] {
      trace.emplace_back("b1");
      trace.push_back(a.await());
      trace.emplace_back("b2");
    });
    b.await();
    CHECK(trace == words{"a1", "b1", "a2", "ra", "b2"});
  });
}

TEST_CASE("awaiting a dead fiber is a switchpoint", "[await]") {
  run([] {
    auto dead = spin([] { return 3; });
    dead.await();
    words trace;
    spin([&] { trace.emplace_back("other"); });
    trace.push_back(std::to_string(dead.await()));
    CHECK(trace == words{"other", "3"});
  });
}

TEST_CASE("awaiters of one fiber go on in the order in which they came", "[await]") {
  run([] {
    words trace;
    auto first = spin([&] {
      sleep_for(2ms);
      trace.emplace_back("foo");
    });
    auto second = spin([&] {
      first.await();
      trace.emplace_back("bar");
    });
    auto third = spin([&] {
      first.await();
      trace.emplace_back("baz");
    });
    second.await();
    third.await();
    CHECK(trace == words{"foo", "bar", "baz"});
    CHECK(current().children().empty());
  });
}

TEST_CASE("a fiber that is stopped while others await it gives them that value", "[await]") {
  run([] {
    auto f1 = spin([] {
      sleep_for(2ms);
      return 1;
    });
    auto f2 = spin([] {
      sleep_for(1h);
      return 2;
    });
    auto nested = spin([&] { return f1.await() + f2.await(); });
    spin([&] { f2.stop(40); });
    CHECK(nested.await() == 41);
    CHECK(f1.state() == fiber_state::dead);
    CHECK(f2.state() == fiber_state::dead);
  });
}

TEST_CASE("awaiting oneself is a logic error", "[await]") {
  run([] {
    CHECK_THROWS_AS(current().await(), std::logic_error);
    auto f = spin([] { CHECK_THROWS_AS(current().await(), std::logic_error); });
    f.await();
  });
}

TEST_CASE("a pipe is seen within 64 switches while two fibers snooze for ever", "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    int switches = 0;
    bool done = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      done = true;
    });
    group busy;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 2; ++i) {
      busy.spin([&] {
        while (!done && patient(start)) {
          ++switches;
          snooze();
        }
      });
    }
    for (int i = 0; i < 200; ++i) snooze();  // the read is in the kernel's hands
    CHECK(!done);
    switches = 0;
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    reader.await();
    CHECK(switches <= 64 + 4);  // a poll after at most 65 switches, and a turn in the queue
    busy.await_all();
  });
}

TEST_CASE("a pipe is seen within two rounds of a long queue", "[fairness]") {
  run([] {
    constexpr int fibers = 500;
    auto ends = testing::make_pipe();
    bool done = false;
    int switches = 0;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      done = true;
    });
    group busy;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < fibers; ++i) {
      busy.spin([&] {
        while (!done && patient(start)) {
          ++switches;
          snooze();
        }
      });
    }
    for (int i = 0; i < 3; ++i) snooze();
    switches = 0;
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    reader.await();
    CHECK(switches <= 2 * fibers + 4);
    busy.await_all();
  });
}

TEST_CASE("a fiber that snoozes alone sees a timer", "[fairness]") {
  run([] {
    bool fired = false;
    spin([&] {
      sleep_for(2ms);
      fired = true;
    });
    const auto start = std::chrono::steady_clock::now();
    while (!fired && patient(start)) snooze();
    CHECK(fired);
  });
}

TEST_CASE("two fibers that snooze for ever see a timer", "[fairness]") {
  run([] {
    bool fired = false;
    spin([&] {
      sleep_for(1ms);
      fired = true;
    });
    const auto start = std::chrono::steady_clock::now();
    auto other = spin([&] {
      while (!fired && patient(start)) snooze();
    });
    while (!fired && patient(start)) snooze();
    CHECK(fired);
    other.await();
  });
}

TEST_CASE("a fiber that snoozes alone sees a pipe", "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    bool seen = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      seen = true;
    });
    snooze();
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    const auto start = std::chrono::steady_clock::now();
    while (!seen && patient(start)) snooze();
    CHECK(seen);
    reader.await();
  });
}

TEST_CASE("a fiber that sleeps for no time again and again does not starve a pipe", "[fairness]") {
  run([] {
    auto ends = testing::make_pipe();
    bool seen = false;
    auto reader = spin([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
      seen = true;
    });
    snooze();
    REQUIRE(::write(ends.second(), "x", 1) == 1);
    int rounds = 0;
    while (!seen && ++rounds < 1000) sleep_for(0ms);
    CHECK(seen);
    reader.await();
  });
}

TEST_CASE("a checkpoint gives way to others once its time has come", "[fairness]") {
  run([] {
    bool other_ran = false;
    spin([&] { other_ran = true; });
    compute_for(2ms);
    checkpoint();
    CHECK(other_ran);
  });
}

TEST_CASE("a busy thread sees what another thread raises", "[fairness]") {
  run([] {
    std::string told;
    auto idle = spin([&] {
      try {
        sleep();
      } catch (const std::runtime_error& error) {
        told = error.what();
      }
    });
    snooze();
    CHECK(idle.state() == fiber_state::waiting);
    std::thread stranger([ref = fiber_ref(idle)] { ref.raise(std::runtime_error("from afar")); });
    const auto start = std::chrono::steady_clock::now();
    while (idle.state() != fiber_state::dead && patient(start)) snooze();
    CHECK(told == "from afar");
    stranger.join();
  });
}

TEST_CASE("two busy fibers see what another thread schedules", "[fairness]") {
  run([] {
    bool woken = false;
    auto idle = spin([&] {
      (void)suspend<int>();
      woken = true;
    });
    snooze();
    std::thread stranger([ref = fiber_ref(idle)] { ref.schedule(1); });
    const auto start = std::chrono::steady_clock::now();
    auto other = spin([&] {
      while (!woken && patient(start)) snooze();
    });
    while (!woken && patient(start)) snooze();
    CHECK(woken);
    stranger.join();
    other.await();
  });
}
