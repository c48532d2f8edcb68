// SPDX-License-Identifier: MIT
// Parts of a body that end when their time is up.
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "catch.hpp"
#include "compute.hpp"
#include "fixtures.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::compute_until;
using testing::throws_cancelled;
using testing::words;

namespace {

struct some_error : std::runtime_error {
  some_error() : std::runtime_error("some error") {}
};

void busy(std::chrono::microseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("move_on_after() returns the body's result if it ends in time", "[scope]") {
  run([] {
    CHECK(move_on_after(1h, [] { sleep_for(1ms); }));
    const std::optional<int> result = move_on_after(1h, [] {
      snooze();
      return 5;
    });
    CHECK(result == 5);
    const auto pointer = move_on_after(1h, [] { return std::make_unique<int>(6); });
    REQUIRE(pointer);
    CHECK(**pointer == 6);
  });
}

TEST_CASE("move_on_after() returns an empty result if the time is up", "[scope]") {
  run([] {
    const auto start = clock::now();
    CHECK(!move_on_after(3ms, [] { sleep(); }));
    CHECK(clock::now() - start >= 3ms);
    CHECK(!move_on_after(1ms, [] {
      sleep_for(1h);
      return 5;
    }));
    CHECK(!move_on_after(1ms, [] { return suspend<int>(); }));
    const auto nested = move_on_after(1ms, []() -> std::optional<int> {
      sleep_for(1h);
      return 5;
    });
    CHECK(!nested.has_value());
    const auto empty = move_on_after(1h, [] { return std::optional<int>(); });
    REQUIRE(empty.has_value());
    CHECK(!empty->has_value());
  });
}

TEST_CASE("move_on_after() ends every kind of wait", "[scope]") {
  run([] {
    auto ends = testing::make_pipe();
    auto idle = spin([] { sleep(); });
    std::optional<resumer<void>> stored;
    CHECK(!move_on_after(1ms, [] { sleep(); }));
    CHECK(!move_on_after(1ms, [&] { idle.await(); }));
    CHECK(!move_on_after(1ms, [&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
    }));
    CHECK(!move_on_after(1ms, [&] { io::wait_fd(ends.first(), 1); }));
    CHECK(!move_on_after(
        1ms, [&] { suspend_with([&](resumer<void> r) { stored.emplace(std::move(r)); }); }));
    CHECK(!move_on_after(1ms, [] {
      group voices;
      voices.spin([] { sleep(); });
      voices.await_all();
    }));
    CHECK(idle.state() == fiber_state::waiting);
  });
}

TEST_CASE("move_on_after() passes on the body's exception and drops the deadline", "[scope]") {
  run([] {
    CHECK_THROWS_AS(move_on_after(2ms, [] { throw some_error(); }), some_error);
    sleep_for(5ms);
  });
}

TEST_CASE("move_on_after() destroys the body's locals in order", "[scope]") {
  run([] {
    words trace;
    struct note {
      words& log;
      const char* word;
      ~note() { log.emplace_back(word); }
    };
    CHECK(!move_on_after(1ms, [&] {
      const note outer{trace, "outer"};
      const note inner{trace, "inner"};
      sleep();
    }));
    CHECK(trace == words{"inner", "outer"});
  });
}

TEST_CASE("move_on_after(): an inner deadline ends the inner body alone", "[scope]") {
  run([] {
    words trace;
    const bool outer = move_on_after(1h, [&] {
      CHECK(!move_on_after(1ms, [] { sleep(); }));
      trace.emplace_back("between");
      sleep_for(1ms);
      trace.emplace_back("after");
    });
    CHECK(outer);
    CHECK(trace == words{"between", "after"});
  });
}

TEST_CASE("move_on_after(): an outer deadline passes through an inner one", "[scope]") {
  run([] {
    bool was_between = false;
    const bool outer = move_on_after(1ms, [&] {
      move_on_after(1h, [] { sleep(); });
      was_between = true;
    });
    CHECK(!outer);
    CHECK(!was_between);
  });
}

TEST_CASE("move_on_after(): the outer of two passed deadlines wins", "[scope]") {
  run([] {
    bool was_between = false;
    const bool outer = move_on_after(1ms, [&] {
      move_on_after(2ms, [] {
        compute_until(clock::now() + 4ms);
        snooze();
        sleep();
      });
      was_between = true;
      sleep();
    });
    CHECK(!outer);
    CHECK(!was_between);
    CHECK(!move_on_after(1ms, [] { move_on_after(1ms, [] { sleep(); }); }));
  });
}

TEST_CASE("move_on_after(): deadlines nested ten deep each end their own scope", "[scope]") {
  run([] {
    for (int expiring = 0; expiring < 10; ++expiring) {
      int left_by = -1;
      struct tower {
        int expiring;
        int& left_by;
        void build(int level) const {
          if (level == 10) sleep();
          const bool done = move_on_after(level == expiring ? 1ms : 1h, [&] { build(level + 1); });
          if (!done) left_by = level;
        }
      };
      tower{expiring, left_by}.build(0);
      CHECK(left_by == expiring);
    }
  });
}

TEST_CASE("move_on_after(): an inner handler of std::exception does not stop an outer deadline",
          "[scope]") {
  run([] {
    bool handled = false;
    CHECK(!move_on_after(1ms, [&] {
      try {
        sleep();
      } catch (const std::exception&) {
        handled = true;
      }
    }));
    CHECK(!handled);
  });
}

TEST_CASE("move_on_after(): an inner deadline does not take an outer cancellation for its own",
          "[scope]") {
  run([] {
    bool went_on = false;
    auto f = spin([&] {
      move_on_after(1h, [] { sleep(); });
      went_on = true;
    });
    snooze();
    f.cancel("from outside");
    try {
      f.await();
    } catch (const fiber_cancelled& error) {
      CHECK(std::string(error.reason()) == "from outside");
    }
    CHECK(f.state() == fiber_state::dead);
    CHECK(!went_on);
  });
}

TEST_CASE("move_on_after() does not take a child's cancellation for an expiry", "[scope]") {
  run([] {
    auto child = spin([] { sleep(); });
    snooze();
    child.cancel();
    CHECK_THROWS_AS(move_on_after(1h, [&] { child.await(); }), fiber_cancelled);
  });
}

TEST_CASE("move_on_after(): a deadline of one fiber does not affect others", "[scope]") {
  run([] {
    words trace;
    auto a = spin([&] {
      if (!move_on_after(1ms, [] { sleep(); })) trace.emplace_back("a left");
    });
    auto b = spin([&] {
      if (move_on_after(1h, [] { sleep_for(3ms); })) trace.emplace_back("b done");
    });
    a.await();
    b.await();
    CHECK(trace == words{"a left", "b done"});
  });
}

TEST_CASE("move_on_after() returns the result of a finished body, however late", "[scope]") {
  run([] {
    const auto result = move_on_after(1ms, [] {
      const auto end = std::chrono::steady_clock::now() + 2ms;
      while (std::chrono::steady_clock::now() < end) {
      }
      return 3;
    });
    CHECK(result == 3);
    sleep_for(3ms);
  });
}

TEST_CASE("move_on_after(): a deadline never fires after its scope, though it was due before",
          "[scope]") {
  run([] {
    group background;
    background.spin([] { sleep(); });
    background.spin([] {
      for (;;) sleep_for(1h);
    });
    for (int round = 0; round < 50; ++round) {
      const auto result = move_on_after(1ms, [] {
        compute_until(clock::now() + 2ms);
        snooze();
        return 7;
      });
      CHECK((!result || *result == 7));
      snooze();
      sleep_for(0ms);
    }
  });
}

TEST_CASE("move_on_after() ends a loop that only snoozes", "[scope]") {
  run([] {
    const auto start = std::chrono::steady_clock::now();
    const bool done = move_on_after(2ms, [&] {
      while (std::chrono::steady_clock::now() - start < 5s) snooze();
    });
    CHECK(!done);
  });
}

TEST_CASE("move_on_after() ends a suspend() that nothing else can end", "[scope]") {
  run([] {
    const auto start = clock::now();
    const bool done = move_on_after(5ms, [] { suspend(); });
    CHECK(!done);
    CHECK(clock::now() - start >= 5ms);
  });
}

TEST_CASE("move_on_after() without time ends the body at the first wait, not before", "[scope]") {
  run([] {
    for (const clock::duration no_time : {clock::duration(0), clock::duration(-1s)}) {
      bool began = false;
      CHECK(!move_on_after(no_time, [&] {
        began = true;
        sleep_for(1ms);
      }));
      CHECK(began);
      CHECK(move_on_after(no_time, [] { return 4; }) == 4);
    }
    snooze();
    sleep_for(1ms);
  });
}

TEST_CASE("move_on_after() with a limit of centuries never expires", "[scope]") {
  run([] {
    CHECK(move_on_after(clock::duration::max(), [] { sleep_for(1ms); }));
    CHECK(!move_on_after(1ms, [] { move_on_after(clock::duration::max(), [] { sleep(); }); }));
  });
}

TEST_CASE("move_on_after() ends a hundred bodies in a row", "[scope]") {
  run([] {
    int expired = 0;
    for (int i = 0; i < 100; ++i) {
      if (!move_on_after(100us, [] { sleep(); })) ++expired;
    }
    CHECK(expired == 100);
  });
}

TEST_CASE("move_on_after(): thousands of passed scopes cost nothing", "[scope]") {
  run([] {
    const auto scopes = testing::scaled(100'000, 20'000);
    for (std::size_t i = 0; i < scopes; ++i) {
      move_on_after(1h, [&] {
        if (i % 100 == 0) snooze();
      });
    }
    const auto start = clock::now();
    suspend();
    CHECK(clock::now() - start < 1h);
    CHECK(!move_on_after(1ms, [] { sleep(); }));
  });
}

TEST_CASE("move_on_after(): thousands of scopes in many fibers at once cost nothing", "[scope]") {
  run([] {
    const auto fibers = testing::scaled(5'000, 1'000);
    std::size_t in_time = 0;
    std::size_t expired = 0;
    for (std::size_t i = 0; i < fibers; ++i) {
      spin([&, i] {
        const bool done = move_on_after(i % 2 == 0 ? clock::duration(1h) : 1ms, [i] {
          if (i % 2 == 0) {
            sleep_for(std::chrono::microseconds(i % 97));
          } else {
            sleep();
          }
        });
        ++(done ? in_time : expired);
      });
    }
    const auto start = clock::now();
    suspend();
    CHECK(in_time == (fibers + 1) / 2);
    CHECK(expired == fibers / 2);
    CHECK(clock::now() - start < 1h);
  });
}

TEST_CASE("move_on_after(): a read at its deadline either reads or expires, never both",
          "[scope]") {
  run([] {
    auto ends = testing::make_pipe();
    const auto rounds = testing::scaled(10'000, 1'000);
    std::size_t bytes_written = 0;
    std::size_t bytes_read = 0;
    auto writer = spin([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        sleep_for(20us);
        io::write(ends.second(), testing::bytes_of("x"));
        ++bytes_written;
      }
    });
    while (writer.state() != fiber_state::dead) {
      move_on_after(20us, [&] {
        std::array<std::byte, 1> buffer;
        bytes_read += io::read(ends.first(), buffer);
      });
    }
    std::array<std::byte, 4096> rest;
    ends.close_second();
    for (std::size_t count = 1; count > 0;) {
      count = io::read(ends.first(), rest);
      bytes_read += count;
    }
    CHECK(bytes_read == bytes_written);
    CHECK(bytes_written == rounds);
  });
}

TEST_CASE("move_on_after(): readiness at the deadline is in time or late, never carried over",
          "[scope]") {
  run([] {
    auto ends = testing::make_pipe();
    const auto rounds = testing::scaled(10'000, 500);
    std::size_t ready = 0;
    std::size_t late = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto limit = clock::now() + 50us;
      auto writer = spin([&ends, limit] {
        sleep_until(limit);
        io::write(ends.second(), testing::bytes_of("x"));
      });
      const auto events =
          move_on_after(limit - clock::now(), [&] { return io::wait_fd(ends.first(), 1); });
      ++(events ? ready : late);
      writer.await();
      std::array<std::byte, 8> buffer;
      REQUIRE(io::read(ends.first(), buffer) == 1);
      snooze();
    }
    CHECK(ready + late == rounds);
    suspend();
  });
}

TEST_CASE("fiber::raise() from a timer fiber works as a timeout, too", "[scope]") {
  run([] {
    struct late : std::runtime_error {
      late() : std::runtime_error("late") {}
    };
    const auto with_limit = [](clock::duration limit, auto body) {
      auto timer = spin([limit, owner = current()] {
        sleep_for(limit);
        owner.raise(late());
      });
      body();
      timer.cancel();
    };
    CHECK_THROWS_AS(with_limit(1ms, [] { sleep(); }), late);
    CHECK_NOTHROW(with_limit(5ms, [] { sleep_for(1ms); }));
    sleep_for(10ms);
  });
}

TEST_CASE("move_on_after(): every further wait in an expired scope throws, and none behind it",
          "[scope]") {
  run([] {
    int throws = 0;
    const bool returned = move_on_after(10ms, [&] {
      for (int i = 0; i < 3; ++i) throws += throws_cancelled([] { sleep(); }) ? 1 : 0;
    });
    CHECK(returned);  // what swallows it and returns has returned
    CHECK(throws == 3);
    CHECK_FALSE(throws_cancelled([] { sleep_for(1ms); }));
    CHECK_FALSE(throws_cancelled([] { snooze(); }));
  });
}

TEST_CASE("checkpoint() and descriptor calls throw after the limit has passed", "[scope]") {
  if (testing::on_sim()) return;  // virtual time does not pass while a fiber computes
  run([] {
    auto ends = testing::make_socket_pair();
    int count = 0;
    for (int round = 0; round < 100; ++round) {
      count += move_on_after(1us, [] {
        busy(20us);
        checkpoint();
      });
      count += move_on_after(1us, [&] {
        busy(20us);
        std::byte byte{};
        io::send(ends.first(), {&byte, 1});
      });
      std::error_code error;
      count += move_on_after(1us, [&] {
        busy(20us);
        std::byte byte{};
        io::send(ends.first(), {&byte, 1}, 0, error);
        CHECK(error == std::errc::operation_canceled);
        checkpoint();
      });
    }
    CHECK(count == 0);
    CHECK(testing::take_all(ends.second()).empty());
  });
}

TEST_CASE("move_on_after(): the outermost passed limit wins, and none expires early", "[scope]") {
  run([] {
    bool inner_returned = false;
    const bool outer_returned = move_on_after(2ms, [&] {
      inner_returned = move_on_after(1h, [] {
        const auto begin = clock::now();
        for (;;) {
          checkpoint();
          if (testing::on_sim()) sleep_for(100us);
          REQUIRE(clock::now() - begin < 1min);
        }
      });
    });
    CHECK_FALSE(outer_returned);
    CHECK_FALSE(inner_returned);
    CHECK(move_on_after(1h, [] { checkpoint(); }));
  });
}

// The last: a backend that takes a deadline long past for one far ahead never returns.

TEST_CASE("move_on_after() accepts a deadline in the remotest past", "[scope][past]") {
  run([] { CHECK(!move_on_after(clock::duration::min(), [] { sleep(); })); });
}
