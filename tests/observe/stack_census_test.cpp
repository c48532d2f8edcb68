// SPDX-License-Identifier: MIT
// How much of their stacks fibers use, by the place where they are spun: stats().stacks.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/motet.hpp>
#include <motet/observe/stats.hpp>
#include <string_view>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using testing::run_here;

namespace {

constexpr bool measured = !testing::under_asan && !testing::under_tsan;
constexpr std::size_t page = 4096;

/// Writes to `Size` bytes of the stack.
template <std::size_t Size>
[[gnu::noinline]] void use_stack() {
  std::array<volatile std::byte, Size> bytes;
  for (std::size_t i = 0; i < Size; i += page / 2) bytes[i] = std::byte{1};
}

/// Returns: what stats() has of the fibers spun at that line of this file.
stack_stats at_line(unsigned line) {
  for (const stack_stats& entry : stats().stacks) {
    const std::string_view file = entry.site.file;
    if (entry.site.line == line && file.ends_with("stack_census_test.cpp")) return entry;
  }
  return {};
}

/// Spins `count` fibers, and awaits them. Returns: the line.
template <typename F>
unsigned spin_some(std::size_t count, F body) {
  group fibers;
  const unsigned line = __LINE__ + 1;
  for (std::size_t i = 0; i < count; ++i) fibers.spin(body);
  fibers.await_all();
  return line;
}

}  // namespace

TEST_CASE("stats().stacks: how deep the fibers of a site go, of one in 64", "[stats]") {
  if (!measured) return;
  run_here([] {
    stats();
    const unsigned line = __LINE__ + 1;
    for (int i = 0; i < 6'400; ++i) spin([] { use_stack<10 * page>(); }).await();
    const stack_stats one_by_one = at_line(line);
    CHECK(one_by_one.samples >= 50);
    CHECK(one_by_one.samples <= 200);
    CHECK(one_by_one.most >= 10 * page);
    CHECK(one_by_one.most <= 13 * page);
    const stack_stats at_once = at_line(spin_some(6'400, [] { use_stack<10 * page>(); }));
    CHECK(at_once.samples >= 50);
    CHECK(at_once.samples <= 200);
    CHECK(at_once.most >= 10 * page);
    CHECK(at_once.most <= 13 * page);
  });
}

TEST_CASE("stats().stacks: fibers whose captures are on their stacks", "[stats]") {
  if (!measured) return;
  run_here([] {
    stats();
    bool is_intact = true;
    const unsigned line = __LINE__ + 4;
    const auto start = [&](auto size) {
      std::array<std::byte, size> captured{};
      captured.fill(std::byte{7});
      spin([&is_intact, captured] {
        use_stack<5 * page>();
        for (const std::byte item : captured) is_intact = is_intact && item == std::byte{7};
      }).await();
    };
    // The end of the captures is at many places in its page.
    for (int i = 0; i < 3'200; ++i) start(std::integral_constant<std::size_t, 2'000>());
    for (int i = 0; i < 3'200; ++i) start(std::integral_constant<std::size_t, 3'000>());
    for (int i = 0; i < 3'200; ++i) start(std::integral_constant<std::size_t, 6'000>());
    for (int i = 0; i < 3'200; ++i) start(std::integral_constant<std::size_t, 7'000>());
    CHECK(is_intact);
    const stack_stats deep = at_line(line);
    CHECK(deep.samples >= 100);
    CHECK(deep.most >= 5 * page);
    CHECK(deep.most <= 10 * page);
  });
}

TEST_CASE("stats().stacks: a posted function is not measured with those that its fiber ran before",
          "[stats]") {
  if (!measured) return;
  run_here([] {
    stats();
    thread_pool pool(1);
    const unsigned line = __LINE__ + 2;
    for (int i = 0; i < 20'000; ++i) {
      pool.post([] { use_stack<1>(); });
      pool.post([] { use_stack<12 * page>(); });
      if (i % 4 == 0) pool.drain();
    }
    pool.drain();
    CHECK(at_line(line).most <= 3 * page);
  });
}

TEST_CASE("stats().stacks: a forked child begins with none", "[stats]") {
  if (!measured) return;
  run_here([] {
    stats();
    const unsigned line = spin_some(6'400, [] { use_stack<2 * page>(); });
    REQUIRE(at_line(line).samples > 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const bool is_empty = stats().stacks.empty();
      spin_some(6'400, [] { use_stack<2 * page>(); });
      ::_exit(is_empty && at_line(line).samples > 0 ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  });
}

TEST_CASE("stats().stacks: a fiber on a stack that a deeper one has used", "[stats]") {
  if (!measured) return;
  run_here([] {
    stats();
    for (int i = 0; i < 1'000; ++i) spin([] { use_stack<10 * page>(); }).await();
    group fibers;
    const unsigned line = __LINE__ + 1;
    for (int i = 0; i < 6'400; ++i) fibers.spin([] {});
    fibers.await_all();
    const stack_stats shallow = at_line(line);
    CHECK(shallow.samples >= 50);
    CHECK(shallow.most <= 2 * page);
  });
}

TEST_CASE("stats().stacks: sites that take turns are all sampled", "[stats]") {
  if (!measured) return;
  run_here([] {
    stats();
    const unsigned line = __LINE__ + 3;
    for (int i = 0; i < 3'200; ++i) {
      for (int j = 0; j < 63; ++j) spin([] {}).await();
      spin([] {}).await();
    }
    CHECK(at_line(line).samples >= 10);
    CHECK(at_line(line - 1).samples >= 10);
  });
}

TEST_CASE("stats().stacks: a fiber with a stack of its own size", "[stats]") {
  if (!measured) return;
  run_here([] {
    stats();
    constexpr std::size_t size = std::size_t{1} << 21;
    const unsigned line = __LINE__ + 2;
    for (int i = 0; i < 1'000; ++i)
      spin({.stack_size = size}, [] { use_stack<200 * page>(); }).await();
    const stack_stats deep = at_line(line);
    CHECK(deep.samples >= 5);
    CHECK(deep.most >= 200 * page);
    CHECK(deep.most <= 203 * page);
  });
}
