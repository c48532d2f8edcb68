// SPDX-License-Identifier: MIT
// Handlers and destructors that wait: each fiber has its own exceptions and errno, and what is
// pending is thrown when they are over.
#include <cerrno>
#include <exception>
#include <motet/motet.hpp>
#include <optional>
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

TEST_CASE("exception handlers: a handler may block and rethrow its exception", "[handler]") {
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

TEST_CASE("exception handlers: a handler of cancelled may block and rethrow it", "[handler]") {
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

TEST_CASE("exception handlers of several fibers interleave, and each rethrows its own exception",
          "[handler]") {
  run([] {
    constexpr int fibers = 20;
    int right = 0;
    std::vector<fiber<void>> handles;
    for (int i = 0; i < fibers; ++i) {
      handles.push_back(spin([&right, i] {
        for (int round = 0; round < 10; ++round) {
          const int number = 100 * i + round;
          try {
            try {
              throw number;
            } catch (int outer) {
              snooze();
              try {
                throw std::to_string(outer);
              } catch (const std::string& inner) {
                snooze();
                if (inner == std::to_string(number)) ++right;
              }
              snooze();
              throw;
            }
          } catch (int again) {
            if (again == number && std::current_exception() != nullptr) ++right;
          }
          if (std::current_exception() == nullptr) ++right;
        }
      }));
    }
    for (auto& fiber_handle : handles) fiber_handle.await();
    CHECK(right == fibers * 10 * 3);
  });
}

TEST_CASE("std::current_exception() is empty in a fiber while another fiber handles one",
          "[handler]") {
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

TEST_CASE("pending_throw: a destructor may block while its frame unwinds", "[unwinding]") {
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
    auto neighbour = spin([&] {
      sleep_for(1ms);
      trace.emplace_back("other");
    });
    CHECK_THROWS_AS(f.await(), first_error);
    CHECK(trace == words{"begin", "other", "end 1"});
    neighbour.await();
  });
}

TEST_CASE("pending_throw: a destructor may read and write while its frame unwinds", "[unwinding]") {
  run([] {
    auto ends = testing::make_socket_pair();
    std::string text;
    auto f = spin([&] {
      at_exit farewell([&] {
        std::array<std::byte, 8> buffer;
        io::write(ends.first(), testing::bytes_of("bye"));
        const std::size_t size = io::read(ends.first(), buffer);
        text = testing::text_of(std::span(buffer).first(size));
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
    CHECK(text == "bye");
    peer.await();
  });
}

TEST_CASE("pending_throw: an interruption is thrown only after the unwinding", "[unwinding]") {
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

TEST_CASE("pending_throw: a cancellation does not reach a destructor that runs because of it",
          "[unwinding]") {
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

TEST_CASE("std::uncaught_exceptions() counts for each fiber alone", "[unwinding]") {
  run([] {
    std::vector<int> counts;
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(spin([&] {
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
    for (auto& fiber_handle : fibers) fiber_handle.await();
    calm.await();
    CHECK(counts == std::vector<int>(3 * 4 + 5, 1));
  });
}

TEST_CASE("errno belongs to the fiber", "[errno]") {
  run([] {
    int count = 0;
    std::vector<fiber<void>> fibers;
    for (int i = 1; i <= 10; ++i) {
      fibers.push_back(spin([&count, i] {
        for (int round = 0; round < 10; ++round) {
          errno = 100 * i + round;
          snooze();
          // Read anew: the compiler may keep errno's address only because fibers stay at home.
          if (errno == 100 * i + round) ++count;
        }
      }));
    }
    errno = 7;
    for (int i = 0; i < 12; ++i) snooze();
    CHECK(errno == 7);
    for (auto& fiber_handle : fibers) fiber_handle.await();
    CHECK(count == 100);
  });
}

TEST_CASE("errno is the same after a wait, whichever fibers ran meanwhile", "[errno]") {
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
