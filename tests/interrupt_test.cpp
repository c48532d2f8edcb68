// SPDX-License-Identifier: MIT
// Raising and cancelling: what is thrown where, which exception wins, and what clean-up may do.
#include <cerrno>
#include <exception>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

struct first_error : std::runtime_error {
  first_error() : std::runtime_error("first") {}
};

struct second_error : std::runtime_error {
  second_error() : std::runtime_error("second") {}
};

/// Calls a function when it is destroyed.
template <typename F>
struct at_exit {
  explicit at_exit(F function) : call(std::move(function)) {}
  at_exit(const at_exit&) = delete;
  at_exit& operator=(const at_exit&) = delete;
  ~at_exit() { call(); }
  F call;
};

/// Remembers where on which stack it was destroyed.
struct witness {
  explicit witness(std::uintptr_t& to) : place(&to) {}
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

TEST_CASE("a raised exception is thrown from the call that waits", "[raise]") {
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

TEST_CASE("every kind of wait can be interrupted", "[raise]") {
  run([] {
    auto ends = testing::make_pipe();
    auto idle = spin([] { sleep(); });
    std::vector<resumer<void>> kept;
    group waits;
    std::vector<fiber_ref> all;
    int caught = 0;
    const auto wait_by = [&](auto wait) {
      all.push_back(waits.spin([&caught, wait] {
        try {
          wait();
        } catch (const first_error&) {
          ++caught;
        }
      }));
    };
    wait_by([] { sleep(); });
    wait_by([] { sleep_for(1h); });
    wait_by([] { suspend(); });
    wait_by([] { (void)suspend<int>(); });
    wait_by([&] { suspend_with([&](resumer<void> r) { kept.push_back(std::move(r)); }); });
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
    for (const fiber_ref& each : all) {
      CHECK(each.state() == fiber_state::waiting);
      CHECK(each.raise(first_error()));
    }
    waits.await_all();
    CHECK(caught == 9);
    CHECK(idle.state() == fiber_state::waiting);
  });
}

TEST_CASE("a running fiber gets what was raised at its next switchpoint", "[raise]") {
  run([] {
    auto f = spin([] {
      CHECK(current().raise(first_error()));
      CHECK_THROWS_AS(snooze(), first_error);
      snooze();
    });
    f.await();
  });
}

TEST_CASE("every switchpoint delivers what is pending, also when it need not wait", "[raise]") {
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

TEST_CASE("of two exceptions the first stays, and the second raise says so", "[raise]") {
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

TEST_CASE("once an exception has been delivered another can be raised", "[raise]") {
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

TEST_CASE("a value never replaces an exception; it waits for the next suspend", "[raise]") {
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

TEST_CASE("an exception takes the place of a value, once, and keeps its place in the queue",
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

TEST_CASE("a cancellation takes the place of a value that was not yet seen", "[cancel]") {
  run([] {
    words trace;
    auto f = spin([&] {
      at_exit last([&] { trace.emplace_back("left"); });
      (void)suspend<int>();
      trace.emplace_back("went on");
      snooze();
      trace.emplace_back("and on");
    });
    snooze();
    f.schedule(1);
    CHECK(f.cancel() == cancel_result::accepted);
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(trace.back() == "left");
    CHECK(trace.size() <= 2);  // the value may have been seen, but nothing after it
  });
}

TEST_CASE("a fiber that ends before it has run never runs its body", "[raise]") {
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

TEST_CASE("ending one of several fibers before they have run leaves the others alone", "[raise]") {
  run([] {
    for (std::size_t victim = 0; victim < 4; ++victim) {
      words trace;
      std::vector<fiber<void>> fibers;
      for (int i = 0; i < 4; ++i) {
        fibers.push_back(spin([&trace, i] { trace.push_back(std::to_string(i)); }));
      }
      CHECK(fibers[victim].raise(first_error()));
      words expected;
      for (std::size_t i = 0; i < 4; ++i) {
        if (i != victim) expected.push_back(std::to_string(i));
      }
      CHECK_THROWS_AS(fibers[victim].await(), first_error);
      suspend();
      CHECK(trace == expected);
    }
  });
}

TEST_CASE("what an unstarted fiber captured is destroyed on the fiber's own stack", "[raise]") {
  run([] {
    std::uintptr_t started = 0;
    std::uintptr_t unstarted = 0;
    std::uintptr_t frame = 0;
    auto runs = spin([&frame, w = witness(started)] { frame = here_on_stack(); });
    auto never = spin([w = witness(unstarted)] {});
    CHECK(unstarted == 0);
    never.cancel();
    CHECK(unstarted == 0);
    CHECK_THROWS_AS(never.await(), fiber_cancelled);
    runs.await();
    const auto distance = [](std::uintptr_t a, std::uintptr_t b) { return a > b ? a - b : b - a; };
    CHECK(unstarted != 0);
    CHECK(distance(unstarted, here_on_stack()) > 1 << 16);
    CHECK(distance(started, frame) < 1 << 16);
  });
}

TEST_CASE("what an unstarted fiber captured may block in its destructor", "[raise]") {
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

TEST_CASE("raising in a finished fiber does nothing and says so", "[raise]") {
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

TEST_CASE("a fiber whose body has been left is finished, though its children are not over",
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

TEST_CASE("raising nothing is refused", "[raise]") {
  run([] {
    auto f = spin([] { return 1; });
    CHECK_THROWS_AS(f.raise(std::exception_ptr()), std::invalid_argument);
    CHECK(f.await() == 1);
  });
}

TEST_CASE("the very exception object that was raised arrives", "[raise]") {
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

TEST_CASE("anything can be raised, also what is no exception class", "[raise]") {
  run([] {
    auto f = spin([] { sleep(); });
    snooze();
    CHECK(f.raise(std::make_exception_ptr(42)));
    CHECK_THROWS_AS(f.await(), int);
  });
}

TEST_CASE("cancelling is asked once: accepted, already, finished", "[cancel]") {
  run([] {
    auto f = spin([] { sleep(); });
    snooze();
    CHECK(f.cancel("first") == cancel_result::accepted);
    CHECK(f.cancel("second") == cancel_result::already);
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(f.cancel() == cancel_result::finished);
  });
}

TEST_CASE("awaiting a cancelled fiber tells its name and the first reason", "[cancel]") {
  run([] {
    auto f = spin({.name = "alto"}, [] { sleep(); });
    snooze();
    f.cancel("the concert is over");
    f.cancel("too late");
    try {
      f.await();
      FAIL("it was not cancelled");
    } catch (const fiber_cancelled& how) {
      CHECK(std::string(how.reason()) == "the concert is over");
      CHECK(how.fiber() == "alto");
      CHECK(std::string(how.what()).find("alto") != std::string::npos);
      CHECK(std::string(how.what()).find("the concert is over") != std::string::npos);
    }
  });
}

TEST_CASE("cancelled tells its reason, and a handler for exceptions lets it pass", "[cancel]") {
  run([] {
    words trace;
    auto f = spin([&] {
      try {
        sleep();
      } catch (const std::exception&) {
        trace.emplace_back("exception");
      } catch (const cancelled& how) {
        trace.emplace_back(how.reason());
        throw;
      }
    });
    snooze();
    f.cancel("enough");
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(trace == words{"enough"});
    CHECK(!std::is_base_of_v<std::exception, cancelled>);
    CHECK(std::is_base_of_v<std::runtime_error, fiber_cancelled>);
  });
}

TEST_CASE("a cancelled fiber is no failure to its parent", "[cancel]") {
  run([] {
    auto parent = spin([] {
      auto child = spin([] { sleep(); });
      snooze();
      child.cancel();
      sleep_for(2ms);
      return child.state();
    });
    CHECK(parent.await() == fiber_state::dead);
  });
}

TEST_CASE("a fiber that has its value ready when it is cancelled has returned it", "[cancel]") {
  run([] {
    auto f = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
      }
      return 8;
    });
    snooze();
    f.cancel();
    CHECK(f.await() == 8);
  });
}

TEST_CASE("a fiber can cancel itself", "[cancel]") {
  run([] {
    bool went_on = false;
    auto f = spin([&] {
      CHECK(current().cancel("by itself") == cancel_result::accepted);
      snooze();
      went_on = true;
    });
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(!went_on);
  });
}

TEST_CASE("a fiber that dies of another exception while cancelled died of that", "[cancel]") {
  run([] {
    auto f = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
        throw first_error();
      }
    });
    snooze();
    f.cancel();
    CHECK_THROWS_AS(f.await(), first_error);
  });
}

TEST_CASE("what was raised and what was cancelled are both delivered", "[cancel]") {
  run([] {
    words trace;
    auto f = spin([&] {
      for (int i = 0; i < 2; ++i) {
        try {
          sleep();
        } catch (const first_error&) {
          trace.emplace_back("raised");
        } catch (const cancelled&) {
          trace.emplace_back("cancelled");
        }
      }
    });
    snooze();
    CHECK(f.cancel() == cancel_result::accepted);
    CHECK(f.raise(first_error()));
    f.await();
    CHECK(trace.size() == 2);
    CHECK(trace[0] != trace[1]);
  });
}

TEST_CASE("a stopped fiber ends with the value that it was stopped with", "[stop]") {
  run([] {
    words trace;
    auto f = spin([&] {
      trace.emplace_back("begin");
      snooze();
      snooze();
      trace.emplace_back("end");
      return 3;
    });
    auto stopper = spin([&] { CHECK(f.stop(42) == cancel_result::accepted); });
    CHECK(f.await() == 42);
    stopper.await();
    CHECK(trace == words{"begin"});
    CHECK(f.stop(43) == cancel_result::finished);
    CHECK(f.await() == 42);
  });
}

TEST_CASE("the value of stop counts only if the body ends by it", "[stop]") {
  run([] {
    auto returns = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
      }
      return std::string("of its own");
    });
    auto throws = spin([]() -> std::string {
      try {
        sleep();
      } catch (const cancelled&) {
        throw first_error();
      }
    });
    snooze();
    returns.stop("of another");
    throws.stop("of another");
    CHECK(returns.await() == "of its own");
    CHECK_THROWS_AS(throws.await(), first_error);
  });
}

TEST_CASE("the first stop counts; stopping what was cancelled gives no value", "[stop]") {
  run([] {
    auto twice = spin([]() -> int { sleep(); });
    auto after = spin([]() -> int { sleep(); });
    snooze();
    CHECK(twice.stop(1) == cancel_result::accepted);
    CHECK(twice.stop(2) == cancel_result::already);
    after.cancel();
    CHECK(after.stop(2) == cancel_result::already);
    CHECK(twice.await() == 1);
    CHECK_THROWS_AS(after.await(), fiber_cancelled);
  });
}

TEST_CASE("stop takes values that are move-only or large, and void ones", "[stop]") {
  run([] {
    auto pointer = spin([]() -> std::unique_ptr<int> { sleep(); });
    auto array = spin([]() -> std::array<int, 100> { sleep(); });
    auto nothing = spin([] { sleep(); });
    snooze();
    pointer.stop(std::make_unique<int>(6));
    std::array<int, 100> sevens;
    sevens.fill(7);
    array.stop(sevens);
    CHECK(nothing.stop() == cancel_result::accepted);
    CHECK(**&pointer.await() == 6);
    CHECK(array.await()[99] == 7);
    nothing.await();
  });
}

TEST_CASE("a fiber that awaits another can be interrupted, and the other lives on", "[raise]") {
  run([] {
    auto slow = spin([] {
      sleep_for(20ms);
      return 1;
    });
    auto waiting = spin([&] {
      CHECK_THROWS_AS(slow.await(), first_error);
      return slow.await();
    });
    snooze();
    waiting.raise(first_error());
    CHECK(waiting.await() == 1);
  });
}

TEST_CASE("an interrupted read has taken nothing: the next reader gets it all", "[raise]") {
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

TEST_CASE("a read that has read gives its bytes, and the interruption comes next", "[raise]") {
  run([] {
    auto ends = testing::make_pipe();
    std::string got;
    auto f = spin([&] {
      std::array<std::byte, 4> buffer;
      for (;;) {
        const std::size_t size = io::read(ends.first(), buffer);
        got += testing::text_of(std::span(buffer).first(size));
      }
    });
    sleep_for(1ms);
    io::write(ends.second(), testing::bytes_of("abcd"));
    f.raise(first_error());
    CHECK_THROWS_AS(f.await(), first_error);
    std::error_code error;
    std::array<std::byte, 8> buffer;
    io::write(ends.second(), testing::bytes_of("e"));
    const std::size_t left = io::read(ends.first(), buffer);
    CHECK(got.size() + left == 5);
  });
}

TEST_CASE("the quiet forms report an interruption and leave it pending", "[raise]") {
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

TEST_CASE("a handler may block and rethrow what it caught", "[handler]") {
  run([] {
    words trace;
    auto f = spin([&] {
      try {
        throw first_error();
      } catch (const first_error& error) {
        sleep_for(20ms);
        snooze();
        trace.emplace_back(error.what());
        throw;
      }
    });
    auto g = spin([&] {
      try {
        throw second_error();
      } catch (...) {
        snooze();
        try {
          throw;
        } catch (const second_error& error) {
          trace.emplace_back(error.what());
        }
      }
    });
    CHECK_THROWS_AS(f.await(), first_error);
    g.await();
    CHECK(trace == words{"second", "first"});
  });
}

TEST_CASE("a handler of a cancellation may block and rethrow it", "[handler]") {
  run([] {
    bool cleaned = false;
    auto f = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
        sleep_for(2ms);
        cleaned = true;
        throw;
      }
    });
    snooze();
    f.cancel();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(cleaned);
  });
}

TEST_CASE("fibers in handlers interleave, and each rethrows its own exception", "[handler]") {
  run([] {
    constexpr int fibers = 20;
    int right = 0;
    std::vector<fiber<void>> all;
    for (int i = 0; i < fibers; ++i) {
      all.push_back(spin([&right, i] {
        for (int round = 0; round < 10; ++round) {
          const int mine = 100 * i + round;
          try {
            try {
              throw mine;
            } catch (int outer) {
              snooze();
              try {
                throw std::to_string(outer);
              } catch (const std::string& inner) {
                snooze();
                if (inner == std::to_string(mine)) ++right;
              }
              snooze();
              throw;
            }
          } catch (int again) {
            if (again == mine && std::current_exception() != nullptr) ++right;
          }
          if (std::current_exception() == nullptr) ++right;
        }
      }));
    }
    for (auto& each : all) each.await();
    CHECK(right == fibers * 10 * 3);
  });
}

TEST_CASE("a fiber sees no exception that another handles", "[handler]") {
  run([] {
    try {
      throw first_error();
    } catch (...) {
      auto f = spin([] { return std::current_exception() == nullptr; });
      CHECK(f.await());
      CHECK(std::current_exception() != nullptr);
    }
  });
}

TEST_CASE("a destructor may block while its fiber unwinds", "[unwinding]") {
  run([] {
    words trace;
    auto f = spin([&] {
      at_exit slow([&] {
        trace.emplace_back("begin");
        sleep_for(20ms);
        auto child = spin([] { return 1; });
        trace.push_back("end " + std::to_string(child.await()));
      });
      throw first_error();
    });
    auto other = spin([&] {
      sleep_for(1ms);
      trace.emplace_back("other");
    });
    CHECK_THROWS_AS(f.await(), first_error);
    CHECK(trace == words{"begin", "other", "end 1"});
    other.await();
  });
}

TEST_CASE("a destructor may read and write while its fiber unwinds", "[unwinding]") {
  run([] {
    auto ends = testing::make_socket_pair();
    std::string got;
    auto f = spin([&] {
      at_exit farewell([&] {
        std::array<std::byte, 8> buffer;
        io::write(ends.first(), testing::bytes_of("bye"));
        const std::size_t size = io::read(ends.first(), buffer);
        got = testing::text_of(std::span(buffer).first(size));
      });
      sleep();
    });
    auto peer = spin([&] {
      std::array<std::byte, 8> buffer;
      const std::size_t size = io::read(ends.second(), buffer);
      sleep_for(1ms);
      io::write(ends.second(), std::span(buffer).first(size));
    });
    snooze();
    f.cancel();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(got == "bye");
    peer.await();
  });
}

TEST_CASE("nothing is thrown into a fiber that unwinds; it comes afterwards", "[unwinding]") {
  run([] {
    words trace;
    std::optional<fiber<void>> f;
    f.emplace(spin([&] {
      try {
        at_exit slow([&] {
          sleep_for(20ms);
          snooze();
          trace.emplace_back("unwound");
        });
        throw first_error();
      } catch (const first_error&) {
        trace.emplace_back("first");
      }
      try {
        snooze();
        snooze();
        trace.emplace_back("nothing came");
      } catch (const second_error&) {
        trace.emplace_back("second");
      }
    }));
    snooze();
    CHECK(f->raise(second_error()));
    f->await();
    CHECK(trace == words{"unwound", "first", "second"});
  });
}

TEST_CASE("a cancellation does not reach a destructor that runs because of it", "[unwinding]") {
  run([] {
    int waited = 0;
    auto f = spin([&] {
      at_exit outer([&] {
        sleep_for(1ms);
        ++waited;
      });
      at_exit inner([&] {
        sleep_for(1ms);
        suspend_with([](resumer<void> r) { r(); });
        ++waited;
      });
      sleep();
    });
    snooze();
    f.cancel();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(waited == 2);
  });
}

TEST_CASE("exceptions in flight are counted for each fiber alone", "[unwinding]") {
  run([] {
    std::vector<int> counts;
    std::vector<fiber<void>> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(spin([&] {
        try {
          at_exit slow([&] {
            counts.push_back(std::uncaught_exceptions());
            snooze();
            counts.push_back(std::uncaught_exceptions());
            sleep_for(1ms);
            counts.push_back(std::uncaught_exceptions());
          });
          throw first_error();
        } catch (const first_error&) {
        }
        snooze();
        counts.push_back(std::uncaught_exceptions() + 1);
      }));
    }
    auto calm = spin([&] {
      for (int i = 0; i < 5; ++i) {
        counts.push_back(std::uncaught_exceptions() + 1);
        snooze();
      }
    });
    snooze();
    CHECK(std::uncaught_exceptions() == 0);
    for (auto& each : all) each.await();
    calm.await();
    CHECK(counts == std::vector<int>(3 * 4 + 5, 1));
  });
}

TEST_CASE("errno belongs to the fiber", "[errno]") {
  run([] {
    int kept = 0;
    std::vector<fiber<void>> all;
    for (int i = 1; i <= 10; ++i) {
      all.push_back(spin([&kept, i] {
        for (int round = 0; round < 10; ++round) {
          errno = 100 * i + round;
          snooze();
          // Read anew: the compiler may keep errno's address only because fibers stay at home.
          if (errno == 100 * i + round) ++kept;
        }
      }));
    }
    errno = 7;
    for (int i = 0; i < 12; ++i) snooze();
    CHECK(errno == 7);
    for (auto& each : all) each.await();
    CHECK(kept == 100);
  });
}

TEST_CASE("errno is after a wait what it was before, whoever was served meanwhile", "[errno]") {
  run([] {
    auto ends = testing::make_pipe();
    auto reader = spin([&] {
      char letter = 0;
      return io::read(ends.first(), std::as_writable_bytes(std::span(&letter, 1)));
    });
    auto writer = spin([&] {
      sleep_for(1ms);
      return io::write(ends.second(), testing::bytes_of("x"));
    });
    errno = 7;
    sleep_for(3ms);
    CHECK(errno == 7);
    CHECK(reader.await() == 1);
    CHECK(writer.await() == 1);
    sleep_for(1ms);
    CHECK(errno == 7);
  });
}

TEST_CASE("a fiber that swallowed its cancellation can spin nothing more", "[cancel]") {
  run([] {
    bool ran = false;
    auto f = spin([&] {
      try {
        sleep();
      } catch (const cancelled&) {
      }
      spin([&] { ran = true; });
    });
    snooze();
    f.cancel("enough");
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(!ran);
  });
}

TEST_CASE("cancelling a fiber that is already runnable runs it once, with the exception",
          "[cancel]") {
  run([] {
    int turns = 0;
    auto f = spin([&] {
      for (;;) {
        snooze();
        ++turns;
      }
    });
    for (int i = 0; i < 4; ++i) snooze();
    const int before = turns;
    f.cancel();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(turns == before);
  });
}

TEST_CASE("suspend_with gives the value that its resumer was called with", "[resumer]") {
  run([] {
    CHECK(suspend_with<int>([](resumer<int> r) { r(1); }) == 1);
    const std::string text = suspend_with<std::string>([](resumer<std::string> r) {
      spin([r = std::make_shared<resumer<std::string>>(std::move(r))] {
        sleep_for(1ms);
        (*r)("later");
      });
    });
    CHECK(text == "later");
    const auto pointer = suspend_with<std::unique_ptr<int>>(
        [](resumer<std::unique_ptr<int>> r) { r(std::make_unique<int>(3)); });
    CHECK(*pointer == 3);
    const auto many = suspend_with<std::array<int, 100>>([](resumer<std::array<int, 100>> r) {
      std::array<int, 100> fours;
      fours.fill(4);
      r(fours);
    });
    CHECK(many[99] == 4);
  });
}

TEST_CASE("suspend_with is a switchpoint also when it is resumed at once", "[resumer]") {
  run([] {
    bool other_ran = false;
    spin([&] { other_ran = true; });
    suspend_with([](resumer<void> r) { r(); });
    CHECK(other_ran);
  });
}

TEST_CASE("a resumer that is dropped unused breaks the wait", "[resumer]") {
  run([] {
    CHECK_THROWS_AS(suspend_with([](resumer<void>) {}), broken_resumer);
    std::optional<resumer<int>> kept;
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>([&](resumer<int> r) { kept.emplace(std::move(r)); }),
                      broken_resumer);
    });
    snooze();
    CHECK(f.state() == fiber_state::waiting);
    kept.reset();
    CHECK(f.state() == fiber_state::runnable);
    f.await();
  });
}

TEST_CASE("a resumer can be called once", "[resumer]") {
  run([] {
    std::optional<resumer<int>> kept;
    auto f = spin(
        [&] { return suspend_with<int>([&](resumer<int> r) { kept.emplace(std::move(r)); }); });
    snooze();
    (*kept)(1);
    CHECK_THROWS_AS((*kept)(2), std::logic_error);
    CHECK(f.await() == 1);
  });
}

TEST_CASE("a resumer that is called after the wait was interrupted does nothing", "[resumer]") {
  run([] {
    std::vector<resumer<int>> kept;
    auto keep = [&](resumer<int> r) { kept.push_back(std::move(r)); };
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>(keep), first_error);
      return suspend_with<int>(keep);
    });
    snooze();
    f.raise(first_error());
    snooze();
    REQUIRE(kept.size() == 2);
    kept[0](1);
    CHECK(f.state() == fiber_state::waiting);
    kept[1](2);
    CHECK(f.await() == 2);
    kept.clear();
  });
}

TEST_CASE("what the callable of suspend_with throws is thrown there", "[resumer]") {
  run([] {
    CHECK_THROWS_AS(suspend_with([](resumer<void>) { throw first_error(); }), first_error);
    std::optional<resumer<void>> kept;
    CHECK_THROWS_AS(suspend_with([&](resumer<void> r) {
                      kept.emplace(std::move(r));
                      throw first_error();
                    }),
                    first_error);
    (*kept)();
    bool other_ran = false;
    spin([&] { other_ran = true; });
    suspend_with([](resumer<void> r) { r(); });
    CHECK(other_ran);
  });
}
