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
    bool finished = done();
    while (!finished && turn()) finished = done();
    CHECK(finished);
  }
};

}  // namespace

TEST_CASE("embed: fibers on a foreign loop sleep, read and communicate", "[embed]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    const auto ends = testing::make_socket_pair(SOCK_NONBLOCK);
    std::string text;
    auto reads = spin([&] {
      std::array<std::byte, 16> room;
      const std::size_t size = io::read(ends.first(), room);
      text.assign(reinterpret_cast<const char*>(room.data()), size);
    });
    auto sleeps = spin([] { sleep_for(20ms); });
    const auto begin = clock::now();
    loop.until([&] { return sleeps.state() == fiber_state::dead; });
    CHECK(clock::now() - begin >= 20ms);
    CHECK(loop.calls < 20);
    CHECK(reads.state() == fiber_state::waiting);
    REQUIRE(::write(ends.second(), "hello", 5) == 5);
    loop.until([&] { return reads.state() == fiber_state::dead; });
    CHECK(text == "hello");
    CHECK(poll_descriptor() == loop.descriptor);
  });
}

TEST_CASE("embed: a loop with nothing to do sleeps", "[embed]") {
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
    const int waits_before = loop.waits;
    CHECK_FALSE(loop.turn(50));  // nobody wakes it in vain
    CHECK(loop.waits == waits_before + 1);
    echoes.cancel();
    loop.until([&] { return echoes.state() == fiber_state::dead; });
  });
}

TEST_CASE("embed: a fiber that the loop's own code wakes runs in the next turn", "[embed]") {
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

TEST_CASE("embed: other threads wake the foreign loop", "[embed][threads]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    int calls = 0;
    const int many = static_cast<int>(testing::scaled(5'000, testing::under_tsan ? 100 : 500));
    std::thread plain([&, target = here()] {
      for (int i = 0; i < many; ++i) {
        target.post([&] { ++calls; });
        if (i % 10 == 0) std::this_thread::sleep_for(100us);
      }
    });
    loop.until([&] { return calls == many; });
    plain.join();
    promise<int> answer;
    auto waits = spin([result = answer.get_future()] { return result.get(); });
    while (loop.turn(20)) {
    }
    std::thread remote([&] {
      std::this_thread::sleep_for(5ms);
      answer.set_value(3);
    });
    loop.until([&] { return waits.state() == fiber_state::dead; });
    remote.join();
    CHECK(waits.await() == 3);
  });
}

TEST_CASE("embed: busy fibers let the foreign loop run", "[embed]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    std::atomic<bool> finished{false};
    long rounds = 0;
    for (int i = 0; i < 2; ++i) {
      spin([&] {
        for (; !finished; ++rounds) snooze();
      });
    }
    for (int i = 0; i < 20; ++i) REQUIRE(loop.turn());
    CHECK(rounds >= 20);
    finished = true;
    loop.until([&] { return current().children().empty(); });
  });
}

TEST_CASE("run_ready() throws the main fiber's failures, and throws within a fiber", "[embed]") {
  run([] {
    if (testing::on_sim()) {
      CHECK_THROWS_AS(poll_descriptor(), std::logic_error);
      return;
    }
    host loop;
    auto stranger = spin([] { run_ready(); });
    CHECK_THROWS_AS(stranger.await(), std::logic_error);
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

TEST_CASE("embed: a forked child has a descriptor of its own", "[embed][fork]") {
  if (testing::on_sim()) return;
  run([] {
    host loop;
    auto sleeps = spin([] { sleep_for(1ms); });
    const pid_t child = ::fork();
    if (child == 0) {
      host child_host;
      bool slept = false;
      spin([&] {
        sleep_for(1ms);
        slept = true;
      });
      child_host.until([&] { return slept; });
      ::_exit(slept ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    loop.until([&] { return sleeps.state() == fiber_state::dead; });
  });
}
