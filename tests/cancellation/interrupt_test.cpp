// SPDX-License-Identifier: MIT
// Raising: what is thrown where, which exception wins, and what is left of what was interrupted.
#include <exception>
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::at_exit;
using testing::first_error;
using testing::second_error;
using testing::words;

namespace {

/// Remembers where on which stack it was destroyed.
struct witness {
  explicit witness(std::uintptr_t& target) : place(&target) {}
  witness(witness&& other) noexcept : place(std::exchange(other.place, nullptr)) {}
  witness& operator=(witness&&) = delete;
  ~witness() {
    if (place != nullptr) {
      *place = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    }
  }
  std::uintptr_t* place;
};

[[gnu::noinline]] std::uintptr_t here_on_stack() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

}  // namespace

TEST_CASE("fiber::raise() throws from the call that waits", "[raise]") {
  run([] {
    words trace;
    auto f = spin([&] {
      try {
        sleep();
      } catch (const first_error& error) {
        trace.emplace_back(error.what());
      }
      return 1;
    });
    snooze();
    CHECK(f.raise(first_error()));
    CHECK(f.state() == fiber_state::runnable);
    CHECK(f.await() == 1);
    CHECK(trace == words{"first"});
  });
}

TEST_CASE("fiber::raise() interrupts every kind of wait", "[raise]") {
  run([] {
    auto ends = testing::make_pipe();
    auto idle = spin([] { sleep(); });
    std::vector<resumer<void>> stored;
    group waits;
    std::vector<fiber_ref> waiters;
    int catches = 0;
    const auto wait_by = [&](auto wait) {
      waiters.push_back(waits.spin([&catches, wait] {
        try {
          wait();
        } catch (const first_error&) {
          ++catches;
        }
      }));
    };
    wait_by([] { sleep(); });
    wait_by([] { sleep_for(1h); });
    wait_by([] { suspend(); });
    wait_by([] { (void)suspend<int>(); });
    wait_by([&] { suspend_with([&](resumer<void> r) { stored.push_back(std::move(r)); }); });
    wait_by([&] { idle.await(); });
    wait_by([&] {
      std::array<std::byte, 1> buffer;
      io::read(ends.first(), buffer);
    });
    wait_by([&] { io::wait_fd(ends.first(), 1); });
    wait_by([] {
      group inner;
      inner.spin([] { sleep(); });
      inner.await_all();
    });
    sleep_for(1ms);
    for (const fiber_ref& waiter : waiters) {
      CHECK(waiter.state() == fiber_state::waiting);
      CHECK(waiter.raise(first_error()));
    }
    waits.await_all();
    CHECK(catches == 9);
    CHECK(idle.state() == fiber_state::waiting);
  });
}

TEST_CASE("fiber::raise() on a running fiber throws at its next switchpoint", "[raise]") {
  run([] {
    auto f = spin([] {
      CHECK(current().raise(first_error()));
      CHECK_THROWS_AS(snooze(), first_error);
      snooze();
    });
    f.await();
  });
}

TEST_CASE("fiber::raise(): every switchpoint throws it, even one that need not wait", "[raise]") {
  run([] {
    auto ends = testing::make_pipe();
    auto dead = spin([] {});
    dead.await();
    io::write(ends.second(), testing::bytes_of("abc"));
    auto f = spin([&] {
      std::array<std::byte, 1> buffer;
      const fiber_ref me = current();
      me.raise(first_error());
      CHECK_THROWS_AS(sleep_for(0ms), first_error);
      me.raise(first_error());
      CHECK_THROWS_AS(checkpoint(), first_error);
      me.raise(first_error());
      CHECK_THROWS_AS(dead.await(), first_error);
      me.raise(first_error());
      CHECK_THROWS_AS(io::read(ends.first(), buffer), first_error);
      me.raise(first_error());
      CHECK_THROWS_AS(io::write(ends.second(), buffer), first_error);
      me.raise(first_error());
      CHECK_THROWS_AS(group().await_all(), first_error);
      me.raise(first_error());
      CHECK_THROWS_AS(suspend_with([](resumer<void> r) { r(); }), first_error);
    });
    f.await();
    std::array<std::byte, 8> rest;
    CHECK(io::read(ends.first(), rest) == 3);  // the interrupted ones moved nothing
  });
}

TEST_CASE("fiber::raise() keeps the first of two exceptions, and reports the second", "[raise]") {
  run([] {
    auto f = spin([] {
      CHECK_THROWS_AS(sleep(), first_error);
      snooze();
      snooze();
    });
    snooze();
    CHECK(f.raise(first_error()));
    CHECK(!f.raise(second_error()));
    f.await();
  });
}

TEST_CASE("fiber::raise() is accepted again after a delivery", "[raise]") {
  run([] {
    auto f = spin([] {
      CHECK_THROWS_AS(sleep(), first_error);
      CHECK_THROWS_AS(sleep(), second_error);
    });
    snooze();
    CHECK(f.raise(first_error()));
    snooze();
    CHECK(f.raise(second_error()));
    f.await();
  });
}

TEST_CASE("fiber::schedule() never replaces an exception; its token waits for the next suspend()",
          "[raise]") {
  run([] {
    auto f = spin([] {
      CHECK_THROWS_AS(suspend<int>(), first_error);
      return suspend<int>();
    });
    snooze();
    CHECK(f.raise(first_error()));
    CHECK(f.schedule(7));
    CHECK(f.await() == 7);
  });
}

TEST_CASE("fiber::raise() replaces a token, and the fiber keeps its place in the run queue",
          "[raise]") {
  run([] {
    words trace;
    const auto wait = [&trace](const std::string& name) {
      for (int round = 0; round < 2; ++round) {
        try {
          trace.push_back(name + std::to_string(suspend<int>()));
        } catch (const first_error&) {
          trace.push_back(name + " first");
        }
      }
    };
    auto a = spin([&] { wait("a"); });
    auto b = spin([&] { wait("b"); });
    snooze();
    a.schedule(1);
    b.schedule(2);
    CHECK(a.raise(first_error()));
    a.schedule(3);
    suspend();
    b.schedule(4);
    suspend();
    CHECK(trace == words{"a first", "b2", "a3", "b4"});
  });
}

TEST_CASE("fiber::raise() before the first run means that the body never runs", "[raise]") {
  run([] {
    bool ran = false;
    auto f = spin([&] { ran = true; });
    auto g = spin([&] { ran = true; });
    auto h = spin([&] {
      ran = true;
      return 1;
    });
    CHECK(f.raise(first_error()));
    CHECK(g.cancel("not wanted") == cancel_result::accepted);
    CHECK(h.stop(5) == cancel_result::accepted);
    CHECK_THROWS_AS(f.await(), first_error);
    CHECK_THROWS_AS(g.await(), fiber_cancelled);
    CHECK(h.await() == 5);
    CHECK(!ran);
  });
}

TEST_CASE("fiber::raise() on one unstarted fiber does not affect the others", "[raise]") {
  run([] {
    for (std::size_t victim = 0; victim < 4; ++victim) {
      words trace;
      std::vector<fiber<void>> fibers;
      for (int i = 0; i < 4; ++i) {
        fibers.push_back(spin([&trace, i] { trace.push_back(std::to_string(i)); }));
      }
      CHECK(fibers[victim].raise(first_error()));
      words expected_words;
      for (std::size_t i = 0; i < 4; ++i) {
        if (i != victim) expected_words.push_back(std::to_string(i));
      }
      CHECK_THROWS_AS(fibers[victim].await(), first_error);
      suspend();
      CHECK(trace == expected_words);
    }
  });
}

TEST_CASE("fiber: captures of an unstarted fiber are destroyed on its own stack", "[raise]") {
  run([] {
    std::uintptr_t start_address = 0;
    std::uintptr_t unstarted = 0;
    std::uintptr_t frame = 0;
    auto runs = spin([&frame, w = witness(start_address)] { frame = here_on_stack(); });
    auto never = spin([w = witness(unstarted)] {});
    CHECK(unstarted == 0);
    never.cancel();
    CHECK(unstarted == 0);
    CHECK_THROWS_AS(never.await(), fiber_cancelled);
    runs.await();
    const auto distance = [](std::uintptr_t a, std::uintptr_t b) { return a > b ? a - b : b - a; };
    CHECK(unstarted != 0);
    CHECK(distance(unstarted, here_on_stack()) > 1 << 16);
    CHECK(distance(start_address, frame) < 1 << 16);
  });
}

TEST_CASE("fiber: captures of an unstarted fiber may block in their destructor", "[raise]") {
  run([] {
    words trace;
    auto blocking = std::make_shared<int>();
    {
      std::shared_ptr<int> slow(new int, [&](int* value) {
        trace.emplace_back("begin");
        sleep_for(2ms);
        trace.emplace_back("end");
        delete value;
      });
      spin([slow = std::move(slow)] {}).cancel();
    }
    suspend();
    CHECK(trace == words{"begin", "end"});
  });
}

TEST_CASE("fiber::raise() on a finished fiber has no effect and says so", "[raise]") {
  run([] {
    auto f = spin([] { return 3; });
    f.await();
    CHECK(!f.raise(first_error()));
    CHECK(f.cancel() == cancel_result::finished);
    CHECK(f.stop(4) == cancel_result::finished);
    CHECK(!f.schedule());
    CHECK(f.await() == 3);
    sleep_for(1ms);
  });
}

TEST_CASE("fiber::raise() reports a fiber with a finished body, though its children still run",
          "[raise]") {
  run([] {
    auto f = spin([] {
      spin([] {
        at_exit slow([] { sleep_for(20ms); });
        sleep();
      });
      snooze();
      return 3;
    });
    for (int i = 0; i < 3; ++i) snooze();
    CHECK(f.state() == fiber_state::waiting);
    CHECK(!f.raise(first_error()));
    CHECK(f.cancel() == cancel_result::finished);
    CHECK(f.stop(4) == cancel_result::finished);
    CHECK(f.await() == 3);
  });
}

TEST_CASE("fiber::raise() refuses a null exception_ptr", "[raise]") {
  run([] {
    auto f = spin([] { return 1; });
    CHECK_THROWS_AS(f.raise(std::exception_ptr()), std::invalid_argument);
    CHECK(f.await() == 1);
  });
}

TEST_CASE("fiber::raise() delivers the same exception object", "[raise]") {
  run([] {
    const auto raised = std::make_exception_ptr(first_error());
    const void* address = nullptr;
    try {
      std::rethrow_exception(raised);
    } catch (const first_error& error) {
      address = &error;
    }
    auto f = spin([] { sleep(); });
    snooze();
    CHECK(f.raise(raised));
    try {
      f.await();
      FAIL("it ended without an exception");
    } catch (const first_error& error) {
      CHECK(&error == address);
    }
  });
}

TEST_CASE("fiber::raise() accepts anything that can be thrown", "[raise]") {
  run([] {
    auto f = spin([] { sleep(); });
    snooze();
    CHECK(f.raise(std::make_exception_ptr(42)));
    CHECK_THROWS_AS(f.await(), int);
  });
}

TEST_CASE("fiber::await() can be interrupted, and the awaited fiber lives on", "[raise]") {
  run([] {
    auto slow = spin([] {
      sleep_for(20ms);
      return 1;
    });
    auto awaiter = spin([&] {
      CHECK_THROWS_AS(slow.await(), first_error);
      return slow.await();
    });
    snooze();
    awaiter.raise(first_error());
    CHECK(awaiter.await() == 1);
  });
}

TEST_CASE("io::read() consumes nothing when it is interrupted", "[raise]") {
  run([] {
    auto ends = testing::make_pipe();
    auto f = spin([&] {
      std::array<std::byte, 4> buffer;
      io::read(ends.first(), buffer);
    });
    sleep_for(1ms);
    f.raise(first_error());
    CHECK_THROWS_AS(f.await(), first_error);
    io::write(ends.second(), testing::bytes_of("abcd"));
    std::array<std::byte, 8> buffer;
    CHECK(io::read(ends.first(), buffer) == 4);
  });
}

TEST_CASE("io::read() returns its bytes, and the interruption comes at the next switchpoint",
          "[raise]") {
  run([] {
    auto ends = testing::make_pipe();
    std::string text;
    auto f = spin([&] {
      std::array<std::byte, 4> buffer;
      for (;;) {
        const std::size_t size = io::read(ends.first(), buffer);
        text += testing::text_of(std::span(buffer).first(size));
      }
    });
    sleep_for(1ms);
    io::write(ends.second(), testing::bytes_of("abcd"));
    f.raise(first_error());
    CHECK_THROWS_AS(f.await(), first_error);
    std::error_code error;
    std::array<std::byte, 8> buffer;
    io::write(ends.second(), testing::bytes_of("e"));
    const std::size_t rest = io::read(ends.first(), buffer);
    CHECK(text.size() + rest == 5);
  });
}

TEST_CASE("io: the std::error_code overloads report an interruption and leave it pending",
          "[raise]") {
  run([] {
    auto ends = testing::make_pipe();
    auto f = spin([&] {
      std::array<std::byte, 4> buffer;
      std::error_code error;
      CHECK(io::read(ends.first(), buffer, error) == 0);
      CHECK(error == std::errc::operation_canceled);
      CHECK(io::read(ends.first(), buffer, error) == 0);
      CHECK(error == std::errc::operation_canceled);
      CHECK_THROWS_AS(snooze(), first_error);
    });
    sleep_for(1ms);
    f.raise(first_error());
    f.await();
  });
}
