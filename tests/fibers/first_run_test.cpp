// SPDX-License-Identifier: MIT
// A fiber gets a stack when it first runs; what it is, and what it was promised, is so before.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <motet/motet.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// Of a stack that is mapped for itself.
constexpr std::size_t large_stack = std::size_t{16} << 20;

/// Returns: which stack the caller is on.
std::uintptr_t this_stack() {
  const volatile char marker = 0;
  return reinterpret_cast<std::uintptr_t>(&marker) / (std::size_t{128} * 1024);
}

/// Whether an ended fiber's stack goes on to the next at once.
bool stacks_are_passed_on() {
  return !testing::under_tsan && !testing::disabled("stack_reuse");
}

/// Uses most of a stack.
[[gnu::noinline]] void use_stack() {
  std::array<volatile char, std::size_t{64} * 1024> large;
  for (std::size_t i = 0; i < large.size(); i += 1024) large[i] = 1;
}

/// In bytes. Source: proc_pid_statm(5).
std::size_t mapped() {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> sizes(std::fopen("/proc/self/statm", "r"),
                                                        &std::fclose);
  std::size_t pages = 0;
  REQUIRE(std::fscanf(sizes.get(), "%zu", &pages) == 1);
  return pages * 4096;
}

}  // namespace

TEST_CASE("spin(): fibers that never wait share one stack, waiting fibers have their own",
          "[first run]") {
  run([] {
    std::vector<std::uintptr_t> stacks;
    group fibers;
    for (int i = 0; i < 100; ++i) fibers.spin([&stacks] { stacks.push_back(this_stack()); });
    fibers.await_all();
    std::sort(stacks.begin(), stacks.end());
    if (stacks_are_passed_on()) CHECK(stacks.front() == stacks.back());
    stacks.clear();
    for (int i = 0; i < 100; ++i) {
      fibers.spin([&stacks] {
        stacks.push_back(this_stack());
        snooze();
        CHECK(stacks.size() == 100);
      });
    }
    fibers.await_all();
    std::sort(stacks.begin(), stacks.end());
    CHECK(std::adjacent_find(stacks.begin(), stacks.end()) == stacks.end());
  });
}

TEST_CASE("spin(): started fibers and new fibers share one run queue", "[first run]") {
  run([] {
    std::string order;
    group fibers;
    for (const char name : {'a', 'b', 'c'}) {
      fibers.spin([&order, name] {
        order += name;
        snooze();
        order += name;
      });
    }
    snooze();
    fibers.spin([&order] { order += 'd'; });
    fibers.spin([&order] { order += 'e'; });
    fibers.await_all();
    CHECK(order == "abcabcde");
  });
}

TEST_CASE("spin() accepts callables of any size and alignment", "[first run]") {
  struct alignas(64) aligned {
    int value;
  };
  struct alignas(4096) of_a_page {
    int value;
  };
  run([] {
    const auto address = [](const auto& object) {
      return reinterpret_cast<std::uintptr_t>(&object);
    };
    std::array<char, 60> small{'a'};
    std::array<char, 65> oversized{'b'};
    std::array<char, 60'000> large{'c'};
    const aligned lines{4};
    const of_a_page pages{5};
    CHECK(spin([small] { return small[0]; }).await() == 'a');
    CHECK(spin([oversized] { return oversized[0]; }).await() == 'b');
    CHECK(spin([large] {
            use_stack();
            return large[0];
          }).await() == 'c');
    CHECK(spin([lines, address] { return address(lines) % 64 == 0 ? lines.value : 0; }).await() ==
          4);
    CHECK(spin([pages, address] { return address(pages) % 4096 == 0 ? pages.value : 0; }).await() ==
          5);
  });
}

TEST_CASE("spin(): a fiber's captures are destroyed on its stack, before the next one starts",
          "[first run]") {
  run([] {
    std::string order;
    struct mark {
      explicit mark(std::string& text, char name) : order(&text), letter(name) {}
      mark(mark&& other) noexcept
          : order(std::exchange(other.order, nullptr)), letter(other.letter) {}
      mark& operator=(mark&&) = delete;
      ~mark() {
        if (order != nullptr) *order += letter;
      }
      std::string* order;
      char letter;
    };
    group fibers;
    fibers.spin([&order, payload = mark(order, 'A')] { order += 'a'; });
    fibers.spin([&order, payload = mark(order, 'B')] { order += 'b'; });
    fibers.await_all();
    CHECK(order == "aAbB");
  });
}

TEST_CASE("spin(): a fiber starts without errno and exceptions of the previous fiber",
          "[first run]") {
  run([] {
    int error_number = -1;
    bool has_exception = true;
    group fibers;
    fibers.spin([] {
      try {
        throw std::runtime_error("of the first");
      } catch (const std::runtime_error&) {
        errno = EBADF;
      }
    });
    fibers.spin([&] {
      error_number = errno;
      has_exception = std::current_exception() != nullptr || std::uncaught_exceptions() != 0;
    });
    fibers.await_all();
    CHECK(error_number == 0);
    CHECK_FALSE(has_exception);
  });
}

TEST_CASE("fiber: an interruption before the first run ends the fiber without running it",
          "[first run]") {
  run([] {
    bool ran = false;
    auto raised = spin([&ran] { ran = true; });
    auto target = spin([&ran] { ran = true; });
    auto late = spin([&ran] { ran = true; });
    raised.raise(std::make_exception_ptr(std::runtime_error("early")));
    target.cancel();
    CHECK_THROWS_AS(raised.await(), std::runtime_error);
    CHECK_THROWS_AS(target.await(), fiber_cancelled);
    late.await();
    CHECK(ran);
  });
}

TEST_CASE("spin(): each fiber in a chain of waiting parents needs one stack", "[first run]") {
  run([] {
    const auto count = testing::scaled(10'000, 1'000);
    std::size_t deepest = 0;
    struct link {
      std::size_t depth;
      std::size_t* deepest;
      void operator()() const {
        ++*deepest;
        if (depth > 0) spin(link{depth - 1, deepest}).await();
      }
    };
    spin(link{count, &deepest}).await();
    CHECK(deepest == count + 1);
  });
}

/// Under a sanitizer the limit of the address space is exceeded from the beginning.
TEST_CASE("spin(): each fiber that could be spun has a stack when all wait at once",
          "[first run]") {
  if (testing::under_asan || testing::under_tsan) return;
  run([] {
    spin([] {}).await();  // what is mapped once is
    rlimit old_limit{};
    REQUIRE(::getrlimit(RLIMIT_AS, &old_limit) == 0);
    rlimit tight = old_limit;
    tight.rlim_cur = mapped() + (std::size_t{600} << 20);
    REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
    group fibers;
    std::size_t spun = 0;
    std::size_t waiters = 0;
    bool refused = false;
    try {
      for (; spun < 100'000; ++spun) {
        fibers.spin([&waiters] {
          use_stack();
          ++waiters;
          sleep();
        });
      }
    } catch (const stack_unavailable&) {
      refused = true;
    }
    ::setrlimit(RLIMIT_AS, &old_limit);
    CHECK(refused);
    snooze();
    CHECK(spun > 1'000);
    CHECK(waiters == spun);
    fibers.cancel();
    fibers.await_all();
  });
}

TEST_CASE("spin() reuses the stacks of ended fibers, and large stacks are released",
          "[first run]") {
  run([] {
    const auto spin_both = [] {
      const auto waits = [] {
        use_stack();
        snooze();
      };
      spin(waits).await();
      spin({.stack_size = large_stack}, waits).await();
    };
    spin_both();
    sleep_for(1ms);
    const std::size_t start = mapped();
    for (int i = 0; i < 200; ++i) spin_both();
    CHECK(mapped() < start + 2 * large_stack);
    sleep_for(1ms);
    CHECK(mapped() < start + large_stack);
  });
}

TEST_CASE("spin(): a large stack is released though its thread is never idle", "[first run]") {
  run([] {
    auto sleeper = spin([] { sleep_for(1h); });
    snooze();
    const std::size_t start = mapped();
    spin({.stack_size = large_stack}, [] {}).await();
    for (int i = 0; i < 200; ++i) snooze();
    CHECK(mapped() < start + large_stack);
    sleeper.cancel();
  });
}

TEST_CASE("spin(): the result of a fiber with a large stack lives until the last handle is gone",
          "[first run]") {
  const auto value = std::make_shared<int>(1);
  const auto returns = [&value] { return value; };
  const auto throws = [&value] { throw std::make_pair(value, 1); };
  const spin_options large{.stack_size = large_stack};
  run([&] {
    spin(large, returns).await();
    CHECK(value.use_count() == 1);
    CHECK_THROWS(spin(large, throws).await());
    CHECK(value.use_count() == 1);
    {
      const fiber_ref handle = spin(large, returns);
      handle.await();
      CHECK(value.use_count() == 2);
    }
    CHECK(value.use_count() == 1);
    spin(large, returns);
  });
  CHECK(value.use_count() == 1);
  thread([&] { spin(large, returns).await(); }).await();
  CHECK(value.use_count() == 1);
}
