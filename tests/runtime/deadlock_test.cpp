// SPDX-License-Identifier: MIT
// What happens when all fibers wait: who is told, what counts as a way out, and suspend() in main.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <motet/motet.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using numbers = std::vector<int>;

namespace {

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

/// In a child process, whose only thread has never used motet.
/// Returns: its exit code.
template <typename F>
int in_fresh_main(F function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Returns: 0 if `wait` throws deadlock.
template <typename F>
int told_of_deadlock(F wait) {
  ::alarm(20);
  try {
    wait();
  } catch (const deadlock&) {
    return 0;
  }
  return 1;
}

}  // namespace

// The deadlocks come first: they are seen only while the process has no other thread.

TEST_CASE("deadlock is thrown in main if nothing is left that could give the value it awaits",
          "[deadlock]") {
  run([] {
    const std::string report = report_of([] { (void)suspend<int>(); });
    CHECK(mentions(report, "suspend"));
    sleep_for(1ms);  // the thread lives on
    auto f = spin([] { return 1; });
    CHECK(f.await() == 1);
  });
}

TEST_CASE("deadlock: the report has a name for each kind of wait", "[deadlock]") {
  run([] {
    latch steps(1);
    barrier line(2);
    once once_only;
    broadcast<int> items(1);
    watch<int> state(0);
    semaphore permits(0);
    auto news = items.subscribe();
    auto states = state.subscribe();
    auto ends = make_channel<int>();
    states.next();
    group members;
    members.spin([&] { steps.wait(); });
    members.spin([&] { line.arrive_and_wait(); });
    members.spin([&] { once_only.call([] { sleep(); }); });
    members.spin([&] { once_only.call([] {}); });
    members.spin([&] { news.pop(); });
    members.spin([&] { states.next(); });
    members.spin([&] { ends.second.pop(); });
    members.spin([&] { const permit_guard guard(permits); });
    const std::string report = report_of([&] { members.await_all(); });
    for (const char* name :
         {"wait for a latch", "wait at a barrier", "call of a once", "pop from a broadcast",
          "wait for a watched value", "pop from a channel", "acquire of a semaphore"}) {
      INFO(name);
      CHECK(mentions(report, name));
    }
    members.cancel();
  });
}

TEST_CASE("deadlock: the report shows each waiter, its wait and where it was spun", "[deadlock]") {
  run([] {
    auto a = spin({.name = "alto"}, [] { suspend(); });
    auto b = spin({.name = "bass"}, [&] { a.await(); });
    const std::string report = report_of([&] { b.await(); });
    CHECK(mentions(report, "alto"));
    CHECK(mentions(report, "bass"));
    CHECK(mentions(report, "await of fiber " + std::to_string(a.id())));
    CHECK(mentions(report, "await of fiber " + std::to_string(b.id())));
    CHECK(mentions(report, "suspend"));
    CHECK(mentions(report, "deadlock_test.cpp"));
    CHECK(b.state() == fiber_state::waiting);
  });
}

TEST_CASE("deadlock is thrown in main if it awaits fibers that await each other", "[deadlock]") {
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

TEST_CASE("deadlock is thrown in main if it awaits a group of which every fiber waits",
          "[deadlock]") {
  run([] {
    group voices;
    voices.spin({.name = "tenor"}, [] { sleep(); });
    const std::string report = report_of([&] { voices.await_all(); });
    CHECK(mentions(report, "tenor"));
    CHECK(voices.size() == 1);
  });
}

TEST_CASE("deadlock is thrown each time main waits for a resumer that it keeps itself",
          "[deadlock]") {
  run([] {
    std::vector<resumer<int>> stored;
    for (int round = 0; round < 3; ++round) {
      CHECK_THROWS_AS(suspend_with<int>([&](resumer<int> r) { stored.push_back(std::move(r)); }),
                      deadlock);
    }
  });
}

TEST_CASE("deadlock is not thrown while a timer is pending", "[deadlock]") {
  run([] {
    auto f = spin([main = current()] {
      sleep_for(5ms);
      main.schedule(7);
    });
    CHECK(suspend<int>() == 7);
  });
}

TEST_CASE("deadlock is not thrown if main's own wait has a deadline", "[deadlock]") {
  run([] { CHECK(!move_on_after(5ms, [] { return suspend<int>(); })); });
}

TEST_CASE("deadlock is thrown in spite of a sleeping transient fiber", "[deadlock]") {
  run([] {
    spin({.name = "metronome", .transient = true}, [] {
      for (;;) sleep_for(1h);
    });
    CHECK_THROWS_AS(suspend<int>(), deadlock);
  });
}

TEST_CASE("suspend() in main returns when nothing is left that could wake a fiber", "[suspend]") {
  run([] {
    suspend();
    numbers events;
    for (int i = 1; i <= 3; ++i) spin([&events, i] { events.push_back(i); });
    suspend();
    suspend();
    CHECK(events == numbers{1, 2, 3});
  });
}

TEST_CASE("suspend() in main waits for sleepers, but not for fibers that wait for ever",
          "[suspend]") {
  run([] {
    numbers events;
    auto for_ever = spin([&] {
      suspend();
      events.push_back(-1);
    });
    for (int i : {3, 1, 2}) {
      spin([&events, i] {
        sleep_for(i * 2ms);
        events.push_back(i);
      });
    }
    suspend();
    CHECK(events == numbers{1, 2, 3});
    CHECK(for_ever.state() == fiber_state::waiting);
  });
}

TEST_CASE("suspend() in main waits for a pending read", "[suspend]") {
  run([] {
    auto ends = testing::make_pipe();
    std::string text;
    auto reader = spin([&] {
      std::array<std::byte, 8> buffer;
      text = testing::text_of(std::span(buffer).first(io::read(ends.first(), buffer)));
    });
    spin([&] {
      sleep_for(2ms);
      io::write(ends.second(), testing::bytes_of("x"));
    });
    suspend();
    CHECK(text == "x");
    CHECK(reader.state() == fiber_state::dead);
  });
}

TEST_CASE("deadlock is thrown once the other threads have ended", "[deadlock]") {
  options config;
  config.deadlock_report = 100ms;
  std::mutex lock;
  std::vector<std::string> notices;
  config.on_notice = [&](std::string_view line) {
    const std::lock_guard guard(lock);
    notices.emplace_back(line);
  };
  std::thread remote([] { std::this_thread::sleep_for(20ms); });
  run(config, [&] {
    channel<int> never(0);
    CHECK_THROWS_AS(never.pop(), deadlock);
  });
  CHECK(notices.empty());
  remote.join();
}

TEST_CASE("deadlock: main is a fiber from its first wait on", "[deadlock]") {
  const std::array waits{
      +[] { channel<int>(0).pop(); },
      +[] { channel<int>(0).push(1); },
      +[] { event().wait(); },
      +[] { notification().wait(); },
      +[] { semaphore(0).acquire(); },
      +[] {
        mutex locked;
        locked.lock();
        condition_variable().wait(locked);
      },
      +[] {
        shared_mutex rwlock;
        rwlock.lock_shared();
        rwlock.lock();
      },
  };
  for (std::size_t i = 0; i < waits.size(); ++i) {
    INFO("wait " << i);
    CHECK(in_fresh_main([&] { return told_of_deadlock(waits[i]); }) == 0);
  }
  // What need not wait starts nothing.
  const auto starts_nothing = [] {
    channel<int> items(1);
    items.push(1);
    items.pop();
    mutex free;
    free.lock();
    free.unlock();
    return run([] { return 0; });
  };
  CHECK(in_fresh_main(starts_nothing) == 0);
  // A lock that was taken before is the main fiber's, and another thread can still answer.
  const auto goes_on = [] {
    ::alarm(20);
    mutex first_lock;
    first_lock.lock();
    channel<int> items(0);
    std::thread giving([&] {
      std::this_thread::sleep_for(20ms);
      items.push(5);
    });
    const bool is_five = items.pop() == 5;
    first_lock.unlock();
    giving.join();
    return is_five && spin([] { return 3; }).await() == 3 ? 0 : 1;
  };
  CHECK(in_fresh_main(goes_on) == 0);
}

TEST_CASE("options::on_notice may wait, also when it reports a deadlock", "[deadlock]") {
  if (testing::on_sim()) return;  // virtual time does not wait for other threads
  bool noticed = false;
  options config;
  config.deadlock_report = 20ms;
  config.on_notice = [&](std::string_view) {
    sleep_for(1ms);
    noticed = true;
  };
  std::thread helper;
  run(config, [&] {
    const fiber_ref waiter = spin([] { suspend<int>(); });
    helper = std::thread([waiter] {
      std::this_thread::sleep_for(300ms);
      waiter.cancel();
    });
    CHECK_THROWS_AS(waiter.await(), fiber_cancelled);
  });
  helper.join();
  CHECK(noticed);
}
