// SPDX-License-Identifier: MIT
// Fibers that wait for ever are found, and no others.
#include <array>
#include <chrono>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <optional>
#include <regex>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct leaks {
  std::size_t count = 0;
  std::string text;
};

leaks found() {
  std::ostringstream stream;
  const std::size_t count = dump_leaks(stream);
  return {count, stream.str()};
}

/// Has all fibers come as far as they can without help.
void settle() {
  for (int i = 0; i < 10; ++i) snooze();
}

bool like(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

/// Each holds a lock, and waits for its neighbour's.
template <std::size_t N>
struct circle {
  std::array<mutex, N> locks;

  void enter(std::size_t i) {
    const std::scoped_lock first(locks[i]);
    snooze();
    const std::scoped_lock second(locks[(i + 1) % N]);
  }
};

}  // namespace

TEST_CASE("dump_leaks() names a circle of locks, with all of its fibers", "[leaks]") {
  run([] {
    circle<3> table;
    group members;
    for (std::size_t i = 0; i < 3; ++i)
      members.spin({.name = "philosopher " + std::to_string(i)}, [&, i] { table.enter(i); });
    settle();
    const leaks all_of_them = found();
    CHECK(all_of_them.count == 3);
    for (int i = 0; i < 3; ++i) {
      const std::string next = std::to_string((i + 1) % 3);
      CHECK(like(
          all_of_them.text,
          "\"philosopher " + std::to_string(i) +
              "\" waiting: lock of a mutex 0x[0-9a-f]+, held by fiber [0-9]+ \"philosopher " +
              next + "\".*spun at .*leaks_test.cpp:[0-9]+: for ever, they wait for one another\n"));
    }
  });
}

TEST_CASE("dump_leaks() includes fibers that wait behind a circle", "[leaks]") {
  run([] {
    circle<2> table;
    group members;
    auto queued = members.spin([&] { table.enter(0); });
    members.spin([&] { table.enter(1); });
    members.spin({.name = "third"}, [&] { const std::scoped_lock guards(table.locks[0]); });
    members.spin({.name = "fourth"}, [&] { queued.await(); });
    settle();
    const leaks four = found();
    CHECK(four.count == 4);
    CHECK(like(four.text, "\"third\" .*: for ever, what it waits for will not come\n"));
    CHECK(like(four.text, "\"fourth\" .*: for ever, what it waits for will not come\n"));
  });
}

TEST_CASE("dump_leaks() includes fibers that await each other", "[leaks]") {
  run([] {
    group members;
    std::array<std::optional<fiber_ref>, 2> handles;
    handles[0] = members.spin([&] { handles[1]->await(); });
    handles[1] = members.spin([&] { handles[0]->await(); });
    settle();
    CHECK(found().count == 2);
  });
}

TEST_CASE("dump_leaks() includes waiters for a lock whose holder has ended", "[leaks]") {
  run([] {
    mutex lock;
    spin([&] { lock.lock(); }).await();
    group members;
    members.spin({.name = "heir"}, [&] { const std::scoped_lock guards(lock); });
    settle();
    const leaks report = found();
    CHECK(report.count == 1);
    CHECK(like(report.text, "\"heir\" .*: for ever, the holder of its lock has ended\n"));
    members.cancel("enough");
  });
}

TEST_CASE("dump_leaks() includes a suspended fiber that has no handle", "[leaks]") {
  run([] {
    spin({.name = "leaked"}, [] { suspend(); });
    auto handle = spin([] { suspend(); });
    settle();
    const leaks report = found();
    CHECK(report.count == 1);
    CHECK(
        like(report.text, "\"leaked\" waiting: suspend.*: for ever, nobody has a handle to it\n"));
    handle.schedule();
  });
}

TEST_CASE("dump_leaks() excludes fibers that a timer may wake", "[leaks]") {
  run([] {
    circle<2> table;
    group members;
    members.spin([&] { move_on_after(1h, [&] { table.enter(0); }); });
    members.spin([&] { table.enter(1); });
    members.spin([] { sleep_for(1h); });
    members.spin([] { move_on_after(1h, [] { suspend(); }); });
    settle();
    CHECK(found().count == 0);
    members.cancel("enough");
  });
}

TEST_CASE("dump_leaks() excludes children under the deadline of a fiber that awaits them",
          "[leaks]") {
  run([] {
    auto bounded = spin([] {
      move_on_after(1h, [] {
        group members;
        members.spin([] { suspend(); });
        members.await_all();
      });
    });
    settle();
    CHECK(found().count == 0);
    bounded.cancel("enough");
  });
}

TEST_CASE("dump_leaks() excludes fibers that an operation, channel or thread may wake", "[leaks]") {
  run([] {
    const auto pair = testing::make_socket_pair();
    channel<int> news(0);
    mutex lock;
    std::array<std::byte, 1> byte{};
    std::thread holder([&] {
      const std::scoped_lock guards(lock);
      news.push(1);
      news.push(2);
    });
    CHECK(news.pop() == 1);
    group members;
    members.spin([&] { io::recv(pair.first(), byte); });
    members.spin([&] { const std::scoped_lock guards(lock); });
    channel<int> silent(0);
    members.spin([&] { silent.pop(); });
    settle();
    CHECK(found().count == 0);
    CHECK(news.pop() == 2);
    members.cancel("enough");
    holder.join();
  });
}

TEST_CASE("dump_leaks() excludes fibers that have a stop token", "[leaks]") {
  run([] {
    std::stop_source source;
    spin([&] { move_on_when_stopped(source.get_token(), [] { suspend(); }); });
    settle();
    CHECK(found().count == 0);
    source.request_stop();
  });
}

TEST_CASE("dump_leaks() excludes fibers that visit another thread", "[leaks]") {
  thread worker([] { sleep(); });
  run([&] {
    const std::size_t count_before = worker.call([] { return found().count; });
    CHECK(count_before == 0);
    spin([&] {
      const portal visit(worker);
      sleep_for(30ms);
      CHECK(found().count == 0);
    });
    spin([&] {
      const portal visit(worker);
      suspend();
    });
    sleep_for(10ms);
    CHECK(found().count == 0);
    CHECK(worker.call([] {
      sleep_for(1ms);
      return found().count;
    }) == 0);
    sleep_for(40ms);
  });
}

TEST_CASE("dump_leaks() finds nothing without a runtime", "[leaks]") {
  std::thread([] { CHECK(found().count == 0); }).join();
}
