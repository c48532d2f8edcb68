// SPDX-License-Identifier: MIT
// A runtime in a foreign loop, here a bare poll(2).
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <motet/motet.hpp>
#include <motet/runtime/embed.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "catch.hpp"
#include "fixtures.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;

namespace {

/// A loop that waits for nothing but the runtime.
struct host {
  int descriptor = poll_descriptor();
  int waits = 0;
  int calls = 0;

  /// Returns: whether there was something to do.
  bool turn(int milliseconds = 1'000) {
    pollfd look{descriptor, POLLIN, 0};
    ++waits;
    if (::poll(&look, 1, milliseconds) <= 0) return false;
    ++calls;
    run_ready();
    return true;
  }
  template <typename Done>
  void until(Done done) {
    bool over = done();
    while (!over && turn()) over = done();
    CHECK(over);
  }
};

}  // namespace

TEST_CASE("a foreign loop has fibers sleep, read and talk", "[embed]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    const auto ends = testing::make_socket_pair(SOCK_NONBLOCK);
    std::string got;
    auto reads = spin([&] {
      std::array<std::byte, 16> room;
      const std::size_t size = io::read(ends.first(), room);
      got.assign(reinterpret_cast<const char*>(room.data()), size);
    });
    auto sleeps = spin([] { sleep_for(20ms); });
    const auto begin = clock::now();
    loop.until([&] { return sleeps.state() == fiber_state::dead; });
    CHECK(clock::now() - begin >= 20ms);
    CHECK(loop.calls < 20);
    CHECK(reads.state() == fiber_state::waiting);
    REQUIRE(::write(ends.second(), "hello", 5) == 5);
    loop.until([&] { return reads.state() == fiber_state::dead; });
    CHECK(got == "hello");
    CHECK(poll_descriptor() == loop.descriptor);
  });
}

TEST_CASE("a loop with nothing to do sleeps", "[embed]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    const auto ends = testing::make_socket_pair(SOCK_NONBLOCK);
    auto echoes = spin([&] {
      std::array<std::byte, 1> byte;
      while (io::read(ends.first(), byte) == 1) io::write_all(ends.first(), byte);
    });
    for (int i = 0; i < 50; ++i) {
      REQUIRE(::write(ends.second(), "x", 1) == 1);
      char back = 0;
      loop.until([&] { return ::read(ends.second(), &back, 1) == 1; });
      CHECK(back == 'x');
    }
    CHECK(loop.calls < 200);
    while (loop.turn(20)) {
    }
    const int before = loop.waits;
    CHECK_FALSE(loop.turn(50));  // nobody wakes it in vain
    CHECK(loop.waits == before + 1);
    echoes.cancel();
    loop.until([&] { return echoes.state() == fiber_state::dead; });
  });
}

TEST_CASE("what the loop's own code wakes runs in the next turn", "[embed]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    event happened;
    auto waits = spin([&] { happened.wait(); });
    CHECK(loop.turn());
    CHECK(waits.state() == fiber_state::waiting);
    while (loop.turn(20)) {
    }
    happened.set();
    CHECK(loop.turn());
    CHECK(waits.state() == fiber_state::dead);
    for (int i = 0; i < 3; ++i) spin([] {});
    loop.until([] { return current().children().empty(); });
  });
}

TEST_CASE("other threads wake the foreign loop", "[embed][threads]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    int called = 0;
    const int many = static_cast<int>(testing::scaled(5'000, testing::under_tsan ? 100 : 500));
    std::thread plain([&, to = here()] {
      for (int i = 0; i < many; ++i) {
        to.post([&] { ++called; });
        if (i % 10 == 0) std::this_thread::sleep_for(100us);
      }
    });
    loop.until([&] { return called == many; });
    plain.join();
    promise<int> answer;
    auto waits = spin([told = answer.get_future()] { return told.get(); });
    while (loop.turn(20)) {
    }
    std::thread other([&] {
      std::this_thread::sleep_for(5ms);
      answer.set_value(3);
    });
    loop.until([&] { return waits.state() == fiber_state::dead; });
    other.join();
    CHECK(waits.await() == 3);
  });
}

TEST_CASE("busy fibers let a foreign loop have its turns", "[embed]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    std::atomic<bool> over{false};
    long rounds = 0;
    for (int i = 0; i < 2; ++i) {
      spin([&] {
        for (; !over; ++rounds) snooze();
      });
    }
    for (int i = 0; i < 20; ++i) REQUIRE(loop.turn());
    CHECK(rounds >= 20);
    over = true;
    loop.until([&] { return current().children().empty(); });
  });
}

TEST_CASE("run_ready throws what concerns the main fiber, and is for it alone", "[embed]") {
  run([] {
    if (testing::on_sim()) {
      CHECK_THROWS_AS(poll_descriptor(), std::logic_error);
      return;
    }
    host loop;
    auto elsewhere = spin([] { run_ready(); });
    CHECK_THROWS_AS(elsewhere.await(), std::logic_error);
    spin([] { throw oops(); });
    CHECK_THROWS_AS(loop.turn(), oops);
    while (loop.turn(0)) {
    }
    sleep_for(1ms);  // by itself, as any main fiber
    auto sleeps = spin([] { sleep_for(1ms); });
    run_ready();
    loop.until([&] { return sleeps.state() == fiber_state::dead; });
  });
}

TEST_CASE("a forked child has a descriptor of its own", "[embed][fork]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    auto sleeps = spin([] { sleep_for(1ms); });
    const pid_t child = ::fork();
    if (child == 0) {
      host own;
      bool slept = false;
      spin([&] {
        sleep_for(1ms);
        slept = true;
      });
      own.until([&] { return slept; });
      ::_exit(slept ? 0 : 1);
    }
    int how = 0;
    REQUIRE(::waitpid(child, &how, 0) == child);
    CHECK(how == 0);
    loop.until([&] { return sleeps.state() == fiber_state::dead; });
  });
}
