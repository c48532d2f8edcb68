// SPDX-License-Identifier: MIT
// The ground: switching stacks, and the stacks themselves.
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <motet/detail/platform/context.hpp>
#include <motet/motet.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/faults.hpp"
#include "catch.hpp"
#include "platform/guards.hpp"
#include "platform/spare_mappings.hpp"
#include "platform/stack_pool.hpp"
#include "platform/valgrind.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet::detail;

namespace {

struct visit {
  context home;
  context away;
  int rounds = 0;
  std::uintptr_t frame = 0;
  double sum = 0;
};

void go_round(void* argument) {
  auto& trip = *static_cast<visit*>(argument);
  sanitizer::after_switch(trip.away.shadow);
  alignas(16) char local[16];
  trip.frame = reinterpret_cast<std::uintptr_t>(&local);
  for (;;) {
    ++trip.rounds;
    trip.sum += 0.5 * trip.rounds;
    switch_context(trip.away, trip.home);
  }
}

/// One context on a stack of its own, and the way back.
struct traveller {
  traveller() {
    rest = pool.take(stack_pool::default_size);
    lay_out(trip.away, rest.top, &go_round, &trip);
    sanitizer::describe(trip.away.shadow, rest.bottom, rest.size(), true);
    const stack main_stack = this_threads_stack();
    sanitizer::describe(trip.home.shadow, main_stack.bottom, main_stack.size(), false);
  }
  ~traveller() {
    sanitizer::forget(trip.away.shadow, rest.bottom, rest.size());
    pool.give_back(rest);
  }
  stack_pool pool;
  stack rest;
  visit trip;
};

/// The same by the switch that is not inline.
struct called_visit {
  saved_context home;
  saved_context away;
  int rounds = 0;
  double sum = 0;
};

[[maybe_unused]] void go_round_by_call(void* argument) {
  auto& trip = *static_cast<called_visit*>(argument);
  for (;;) {
    ++trip.rounds;
    trip.sum += 0.5 * trip.rounds;
    motet_switch_context(&trip.away.stack_pointer, trip.home.stack_pointer);
  }
}

/// Returns: how many frames backtrace(3) finds from here, and whether it has found an end.
int depth_of_stack() {
  std::array<void*, 64> frames{};
  return ::backtrace(frames.data(), static_cast<int>(frames.size()));
}

}  // namespace

#if !defined(MOTET_ASAN) && !defined(MOTET_TSAN)
TEST_CASE("motet_switch_context() does the same as the inline switch", "[context]") {
  stack_pool pool;
  const stack rest = pool.take(stack_pool::default_size);
  called_visit trip;
  lay_out_for_call(trip.away, rest.top, &go_round_by_call, &trip);
  for (int i = 1; i <= 100; ++i) {
    motet_switch_context(&trip.home.stack_pointer, trip.away.stack_pointer);
    CHECK(trip.rounds == i);
  }
  CHECK(trip.sum == 0.5 * 5050);
  pool.give_back(rest);
}
#endif

TEST_CASE("backtrace() unwinds a fiber to its entry", "[context]") {
  motet::run([] {
    const int in_main = depth_of_stack();
    int at_first = 0;
    int after_a_switch = 0;
    auto fiber = motet::spin([&] {
      at_first = depth_of_stack();
      motet::snooze();
      after_a_switch = depth_of_stack();
    });
    fiber.await();
    CHECK(at_first > 2);
    CHECK(at_first < 20);
    CHECK(after_a_switch == at_first);
    CHECK(in_main < 64);
  });
}

TEST_CASE("switch_context() keeps registers and what is below the stack pointer", "[context]") {
  motet::run([] {
    const auto churn = [](std::uint64_t seed) {
      // A frame with a base of its own: over-aligned, and of a size the compiler does not know.
      alignas(64) std::array<std::uint64_t, 8> aligned{};
      std::vector<double> values(seed % 7 + 1, static_cast<double>(seed));
      std::uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7, e = seed * 11;
      long double precise = static_cast<long double>(seed);
      for (std::uint64_t round = 0; round < 100; ++round) {
        aligned[round % 8] += a;
        motet::snooze();
        a += 1, b += a, c += b, d += c, e += d;
        precise += 0.25L;
        for (double& value : values) value += 0.5;
      }
      const auto sum = std::accumulate(aligned.begin(), aligned.end(), e + d + c + b + a);
      return std::tuple(sum, precise, std::accumulate(values.begin(), values.end(), 0.0));
    };
    const auto first_sum = churn(2);
    const auto second_sum = churn(3);
    motet::group churners;
    auto first = churners.spin([&] { return churn(2); });
    auto second = churners.spin([&] { return churn(3); });
    churners.await_all();
    CHECK((first.await() == first_sum));
    CHECK((second.await() == second_sum));
  });
}

TEST_CASE("switch_context() keeps the handlers of exceptions in frames that have switched",
          "[context]") {
  struct counting {
    explicit counting(int& count) : endings(count) {}
    counting(const counting&) = delete;
    counting& operator=(const counting&) = delete;
    ~counting() {
      motet::snooze();  // while an exception is in flight
      ++endings;
    }
    int& endings;
  };
  motet::run([] {
    int endings = 0;
    const auto falls = [&endings](int depth, const auto& self) -> void {
      const counting frame(endings);
      motet::snooze();
      if (depth == 0) throw std::runtime_error("fallen");
      self(depth - 1, self);
    };
    const auto catches = [&](int number) {
      int result = number;
      try {
        falls(number, falls);
      } catch (const std::runtime_error& error) {
        motet::snooze();
        result += error.what() == std::string("fallen") ? 1 : 1'000;
      }
      return result;
    };
    motet::group catchers;
    auto first = catchers.spin([&] { return catches(3); });
    auto second = catchers.spin([&] { return catches(5); });
    catchers.await_all();
    CHECK(first.await() == 4);
    CHECK(second.await() == 6);
    CHECK(endings == 4 + 6);
  });
}

TEST_CASE("switch_context() goes on where the context left, on an aligned stack", "[context]") {
  traveller guest;
  for (int i = 1; i <= 100; ++i) {
    switch_context(guest.trip.home, guest.trip.away);
    CHECK(guest.trip.rounds == i);
  }
  CHECK(guest.trip.frame % 16 == 0);
  CHECK(guest.trip.sum == 0.5 * 5050);
}

TEST_CASE("stack_pool reuses stacks last-in first-out, and colours their tops", "[stack]") {
  if (testing::disabled("stack_reuse")) return;
  stack_pool pool;
  const stack first = pool.take(stack_pool::default_size);
  const stack second = pool.take(stack_pool::default_size);
  CHECK(first.size() >= stack_pool::default_size - 1024);
  CHECK(reinterpret_cast<std::uintptr_t>(first.top) % 4096 !=
        reinterpret_cast<std::uintptr_t>(second.top) % 4096);
  CHECK(reinterpret_cast<std::uintptr_t>(first.top) % 16 == 0);
  pool.give_back(first);
  pool.give_back(second);
  const stack again = pool.take(stack_pool::default_size);
  CHECK(again.bottom == second.bottom);
  pool.give_back(again);
}

TEST_CASE("stack_pool maps a stack of another size for itself", "[stack]") {
  stack_pool pool;
  const stack large = pool.take(1 << 20);
  CHECK(large.size() >= (1 << 20));
  large.bottom[0] = std::byte{1};
  large.top[-1] = std::byte{1};
  pool.give_back(large);
}

namespace {

/// Whether memory cannot be read.
class refusing {
 public:
  bool operator()(const std::byte* address) const {
    errno = 0;
    if (::write(ends_.second(), address, 1) == -1) return errno == EFAULT;
    testing::take_all(ends_.first());
    return false;
  }

 private:
  decltype(testing::make_pipe()) ends_ = testing::make_pipe();
};

}  // namespace

TEST_CASE("stack_pool hands a slab of few stacks on to the next pool, with guards", "[stack]") {
  if (faults::enabled || testing::guards_take_mappings()) return;
  if (testing::disabled("stack_reuse") || motet::detail::valgrind::is_active()) return;
  const refusing refuses;
  const auto bottoms_of = [&](std::size_t count) {
    stack_pool pool;
    std::vector<std::byte*> bottoms;
    for (std::size_t i = 0; i < count; ++i) {
      const stack fresh = pool.take(stack_pool::default_size);
      REQUIRE(refuses(fresh.bottom - 1));
      REQUIRE_FALSE(refuses(fresh.bottom));
      fresh.top[-1] = std::byte{1};
      bottoms.push_back(fresh.bottom);
    }
    return bottoms;
  };
  const std::byte* const first = bottoms_of(3).front();
  CHECK_FALSE(refuses(first));
  CHECK(bottoms_of(32).front() == first);
  CHECK(bottoms_of(40).front() == first);
  CHECK(refuses(first));
  CHECK(bottoms_of(2).size() == 2);
}

TEST_CASE("stack_pool gives every stack a guard that cannot be written to", "[stack]") {
  stack_pool pool;
  const refusing refuses;
  std::vector<stack> stacks;
  for (int i = 0; i < 2'100; ++i) {
    stacks.push_back(
        pool.take(i % 700 == 0 ? 4 * stack_pool::default_size : stack_pool::default_size));
    const stack& last = stacks.back();
    REQUIRE(refuses(last.bottom - 1));
    REQUIRE(refuses(last.bottom - stack_pool::guard));
    REQUIRE_FALSE(refuses(last.bottom));
    REQUIRE_FALSE(refuses(last.top - 1));
  }
  for (const stack& entry : stacks) pool.give_back(entry);
}

TEST_CASE("stack_pool::trim() gives memory back, and keeps some stacks warm", "[stack]") {
  if (testing::disabled("stack_reuse")) return;
  stack_pool pool;
  const auto resident = [](const stack& area) {
    unsigned char residency = 0;
    const auto page = reinterpret_cast<std::uintptr_t>(area.top - 64) & ~std::uintptr_t{4095};
    REQUIRE(::mincore(reinterpret_cast<void*>(page), 1, &residency) == 0);
    return (residency & 1) != 0;
  };
  std::vector<stack> stacks;
  for (int i = 0; i < 1'000; ++i) {
    stacks.push_back(pool.take(stack_pool::default_size));
    stacks.back().top[-64] = std::byte{1};
  }
  CHECK_FALSE(pool.trim());
  for (const stack& entry : stacks) pool.give_back(entry);
  CHECK(resident(stacks.front()));
  while (pool.trim()) {
  }
  const auto warm = std::count_if(stacks.begin(), stacks.end(), resident);
  if (!valgrind::is_active()) CHECK(warm == 256);
  CHECK(resident(stacks.back()));  // the one that is taken next
  for (stack& entry : stacks) {
    entry = pool.take(stack_pool::default_size);
    entry.top[-64] = std::byte{1};
  }
  CHECK(std::count_if(stacks.begin(), stacks.end(), resident) == 1'000);
  for (const stack& entry : stacks) pool.give_back(entry);
}

TEST_CASE("stack_pool::check_size() rejects an invalid size", "[stack]") {
  CHECK_THROWS_AS(stack_pool::check_size(0), std::invalid_argument);
  CHECK_THROWS_AS(stack_pool::check_size(1000), std::invalid_argument);
  CHECK_THROWS_AS(stack_pool::check_size(~std::size_t{0}), std::invalid_argument);
  CHECK_NOTHROW(stack_pool::check_size(64 * 1024));
}

TEST_CASE("spare_mappings keep up to a limit, and give each mapping away once", "[stack]") {
  spare_mappings spares;
  CHECK(spares.take() == nullptr);
  std::array<char, 9> memory{};
  if (faults::enabled) {
    CHECK_FALSE(spares.put(memory.data()));
    return;
  }
  for (std::size_t i = 0; i < 8; ++i) CHECK(spares.put(&memory[i]));
  CHECK_FALSE(spares.put(&memory[8]));
  std::set<void*> mappings;
  for (std::size_t i = 0; i < 8; ++i) mappings.insert(spares.take());
  CHECK(mappings.size() == 8);
  CHECK(mappings.count(nullptr) == 0);
  CHECK(spares.take() == nullptr);
}
