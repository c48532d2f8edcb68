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
  const volatile char here = 0;
  return reinterpret_cast<std::uintptr_t>(&here) / (std::size_t{128} * 1024);
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

TEST_CASE("fibers that end without waiting run on one stack, those that wait on their own",
          "[first run]") {
  run([] {
    std::vector<std::uintptr_t> stacks;
    group all;
    for (int i = 0; i < 100; ++i) all.spin([&stacks] { stacks.push_back(this_stack()); });
    all.await_all();
    std::sort(stacks.begin(), stacks.end());
    if (stacks_are_passed_on()) CHECK(stacks.front() == stacks.back());
    stacks.clear();
    for (int i = 0; i < 100; ++i) {
      all.spin([&stacks] {
        stacks.push_back(this_stack());
        snooze();
        CHECK(stacks.size() == 100);
      });
    }
    all.await_all();
    std::sort(stacks.begin(), stacks.end());
    CHECK(std::adjacent_find(stacks.begin(), stacks.end()) == stacks.end());
  });
}

TEST_CASE("fibers that have begun and that have not stand in one line", "[first run]") {
  run([] {
    std::string order;
    group all;
    for (const char name : {'a', 'b', 'c'}) {
      all.spin([&order, name] {
        order += name;
        snooze();
        order += name;
      });
    }
    snooze();
    all.spin([&order] { order += 'd'; });
    all.spin([&order] { order += 'e'; });
    all.await_all();
    CHECK(order == "abcabcde");
  });
}

TEST_CASE("what a fiber is spun with may be of any size and alignment", "[first run]") {
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
    std::array<char, 65> beyond{'b'};
    std::array<char, 60'000> large{'c'};
    const aligned lines{4};
    const of_a_page pages{5};
    CHECK(spin([small] { return small[0]; }).await() == 'a');
    CHECK(spin([beyond] { return beyond[0]; }).await() == 'b');
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

TEST_CASE("what a fiber holds is destroyed when it ends, on its stack and before the next begins",
          "[first run]") {
  run([] {
    std::string order;
    struct mark {
      explicit mark(std::string& text, char name) : order(&text), left(name) {}
      mark(mark&& other) noexcept : order(std::exchange(other.order, nullptr)), left(other.left) {}
      mark& operator=(mark&&) = delete;
      ~mark() {
        if (order != nullptr) *order += left;
      }
      std::string* order;
      char left;
    };
    group all;
    all.spin([&order, held = mark(order, 'A')] { order += 'a'; });
    all.spin([&order, held = mark(order, 'B')] { order += 'b'; });
    all.await_all();
    CHECK(order == "aAbB");
  });
}

TEST_CASE("a fiber begins without an error number and exceptions of the one that ended before it",
          "[first run]") {
  run([] {
    int found = -1;
    bool caught = true;
    group all;
    all.spin([] {
      try {
        throw std::runtime_error("of the first");
      } catch (const std::runtime_error&) {
        errno = EBADF;
      }
    });
    all.spin([&] {
      found = errno;
      caught = std::current_exception() != nullptr || std::uncaught_exceptions() != 0;
    });
    all.await_all();
    CHECK(found == 0);
    CHECK_FALSE(caught);
  });
}

TEST_CASE("a fiber that is interrupted before it has run ends without running", "[first run]") {
  run([] {
    bool ran = false;
    auto raised = spin([&ran] { ran = true; });
    auto ended = spin([&ran] { ran = true; });
    auto late = spin([&ran] { ran = true; });
    raised.raise(std::make_exception_ptr(std::runtime_error("early")));
    ended.cancel();
    CHECK_THROWS_AS(raised.await(), std::runtime_error);
    CHECK_THROWS_AS(ended.await(), fiber_cancelled);
    late.await();
    CHECK(ran);
  });
}

TEST_CASE("a chain of fibers, each the parent of the next, needs one stack each while they wait",
          "[first run]") {
  run([] {
    const auto count = testing::scaled(10'000, 1'000);
    std::size_t deepest = 0;
    struct link {
      std::size_t left;
      std::size_t* deepest;
      void operator()() const {
        ++*deepest;
        if (left > 0) spin(link{left - 1, deepest}).await();
      }
    };
    spin(link{count, &deepest}).await();
    CHECK(deepest == count + 1);
  });
}

/// Under a sanitizer the limit of the address space is exceeded from the beginning.
TEST_CASE("each fiber that could be spun has a stack when all wait at once", "[first run]") {
  if (testing::under_asan || testing::under_tsan) return;
  run([] {
    spin([] {}).await();  // what is mapped once is
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
    rlimit tight = before;
    tight.rlim_cur = mapped() + (std::size_t{600} << 20);
    REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
    group all;
    std::size_t spun = 0;
    std::size_t waiting = 0;
    bool refused = false;
    try {
      for (; spun < 100'000; ++spun) {
        all.spin([&waiting] {
          use_stack();
          ++waiting;
          sleep();
        });
      }
    } catch (const stack_unavailable&) {
      refused = true;
    }
    ::setrlimit(RLIMIT_AS, &before);
    CHECK(refused);
    snooze();
    CHECK(spun > 1'000);
    CHECK(waiting == spun);
    all.cancel();
    all.await_all();
  });
}

TEST_CASE("the stacks of fibers that end are used again, and large ones go back", "[first run]") {
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
    const std::size_t before = mapped();
    for (int i = 0; i < 200; ++i) spin_both();
    CHECK(mapped() < before + 2 * large_stack);
    sleep_for(1ms);
    CHECK(mapped() < before + large_stack);
  });
}

TEST_CASE("a large stack goes back though its thread never rests", "[first run]") {
  run([] {
    auto sleeper = spin([] { sleep_for(1h); });
    snooze();
    const std::size_t before = mapped();
    spin({.stack_size = large_stack}, [] {}).await();
    for (int i = 0; i < 200; ++i) snooze();
    CHECK(mapped() < before + large_stack);
    sleeper.cancel();
  });
}

TEST_CASE("what a fiber with a large stack returns or throws goes with the last handle",
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
      const fiber_ref kept = spin(large, returns);
      kept.await();
      CHECK(value.use_count() == 2);
    }
    CHECK(value.use_count() == 1);
    spin(large, returns);
  });
  CHECK(value.use_count() == 1);
  thread([&] { spin(large, returns).await(); }).await();
  CHECK(value.use_count() == 1);
}
