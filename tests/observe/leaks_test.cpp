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
  std::ostringstream out;
  const std::size_t count = dump_leaks(out);
  return {count, out.str()};
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

TEST_CASE("a circle of locks is named, with all of its fibers", "[leaks]") {
  run([] {
    circle<3> table;
    group all;
    for (std::size_t i = 0; i < 3; ++i)
      all.spin({.name = "philosopher " + std::to_string(i)}, [&, i] { table.enter(i); });
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

TEST_CASE("who stands behind a circle waits for ever, too", "[leaks]") {
  run([] {
    circle<2> table;
    group all;
    auto one = all.spin([&] { table.enter(0); });
    all.spin([&] { table.enter(1); });
    all.spin({.name = "third"}, [&] { const std::scoped_lock held(table.locks[0]); });
    all.spin({.name = "fourth"}, [&] { one.await(); });
    settle();
    const leaks four = found();
    CHECK(four.count == 4);
    CHECK(like(four.text, "\"third\" .*: for ever, what it waits for will not come\n"));
    CHECK(like(four.text, "\"fourth\" .*: for ever, what it waits for will not come\n"));
  });
}

TEST_CASE("fibers that await one another wait for ever", "[leaks]") {
  run([] {
    group all;
    std::array<std::optional<fiber_ref>, 2> both;
    both[0] = all.spin([&] { both[1]->await(); });
    both[1] = all.spin([&] { both[0]->await(); });
    settle();
    CHECK(found().count == 2);
  });
}

TEST_CASE("a lock whose holder has ended is waited for for ever", "[leaks]") {
  run([] {
    mutex lock;
    spin([&] { lock.lock(); }).await();
    group all;
    all.spin({.name = "heir"}, [&] { const std::scoped_lock held(lock); });
    settle();
    const leaks one = found();
    CHECK(one.count == 1);
    CHECK(like(one.text, "\"heir\" .*: for ever, the holder of its lock has ended\n"));
    all.cancel("enough");
  });
}

TEST_CASE("a suspended fiber to which nobody has a handle waits for ever", "[leaks]") {
  run([] {
    spin({.name = "leaked"}, [] { suspend(); });
    auto kept = spin([] { suspend(); });
    settle();
    const leaks one = found();
    CHECK(one.count == 1);
    CHECK(like(one.text, "\"leaked\" waiting: suspend.*: for ever, nobody has a handle to it\n"));
    kept.schedule();
  });
}

TEST_CASE("what a timer may wake does not wait for ever", "[leaks]") {
  run([] {
    circle<2> table;
    group all;
    all.spin([&] { move_on_after(1h, [&] { table.enter(0); }); });
    all.spin([&] { table.enter(1); });
    all.spin([] { sleep_for(1h); });
    all.spin([] { move_on_after(1h, [] { suspend(); }); });
    settle();
    CHECK(found().count == 0);
    all.cancel("enough");
  });
}

TEST_CASE("children under the limit of a fiber that waits for them do not wait for ever",
          "[leaks]") {
  run([] {
    auto bounded = spin([] {
      move_on_after(1h, [] {
        group all;
        all.spin([] { suspend(); });
        all.await_all();
      });
    });
    settle();
    CHECK(found().count == 0);
    bounded.cancel("enough");
  });
}

TEST_CASE("what an operation, a channel or another thread may wake does not wait for ever",
          "[leaks]") {
  run([] {
    const auto pair = testing::make_socket_pair();
    channel<int> news(0);
    mutex lock;
    std::array<std::byte, 1> one{};
    std::thread holder([&] {
      const std::scoped_lock held(lock);
      news.push(1);
      news.push(2);
    });
    CHECK(news.pop() == 1);
    group all;
    all.spin([&] { io::recv(pair.first(), one); });
    all.spin([&] { const std::scoped_lock held(lock); });
    channel<int> silent(0);
    all.spin([&] { silent.pop(); });
    settle();
    CHECK(found().count == 0);
    CHECK(news.pop() == 2);
    all.cancel("enough");
    holder.join();
  });
}

TEST_CASE("who has a stop token does not wait for ever", "[leaks]") {
  run([] {
    std::stop_source source;
    spin([&] { move_on_when_stopped(source.get_token(), [] { suspend(); }); });
    settle();
    CHECK(found().count == 0);
    source.request_stop();
  });
}

TEST_CASE("who is away, and who has come from elsewhere, does not wait for ever", "[leaks]") {
  thread other([] { sleep(); });
  run([&] {
    const std::size_t before = other.call([] { return found().count; });
    CHECK(before == 0);
    spin([&] {
      const portal there(other);
      sleep_for(30ms);
      CHECK(found().count == 0);
    });
    spin([&] {
      const portal there(other);
      suspend();
    });
    sleep_for(10ms);
    CHECK(found().count == 0);
    CHECK(other.call([] {
      sleep_for(1ms);
      return found().count;
    }) == 0);
    sleep_for(40ms);
  });
}

TEST_CASE("there are no leaks where there is no runtime", "[leaks]") {
  std::thread([] { CHECK(found().count == 0); }).join();
}
