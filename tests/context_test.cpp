// SPDX-License-Identifier: MIT
// The ground: switching stacks, and the stacks themselves.
#include "context.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <motet/errors.hpp>
#include <stdexcept>

#include "catch.hpp"
#include "stack.hpp"

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
  sanitizer::after_switch(trip.away.watched);
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
    trip.away.stack_pointer = lay_out(rest.top, &go_round, &trip);
    sanitizer::describe(trip.away.watched, rest.bottom, rest.size(), true);
    const stack own = this_threads_stack();
    sanitizer::describe(trip.home.watched, own.bottom, own.size(), false);
  }
  ~traveller() {
    sanitizer::forget(trip.away.watched, rest.bottom, rest.size());
    pool.give_back(rest);
  }
  stack_pool pool;
  stack rest;
  visit trip;
};

}  // namespace

TEST_CASE("a context goes on where it left, on an aligned stack", "[context]") {
  traveller one;
  for (int i = 1; i <= 100; ++i) {
    switch_context(one.trip.home, one.trip.away);
    CHECK(one.trip.rounds == i);
  }
  CHECK(one.trip.frame % 16 == 0);
  CHECK(one.trip.sum == 0.5 * 5050);
}

TEST_CASE("stacks are reused last-in first-out, and their tops are coloured", "[stack]") {
  stack_pool pool;
  const stack first = pool.take(stack_pool::default_size);
  const stack second = pool.take(stack_pool::default_size);
  CHECK(first.size() >= stack_pool::default_size - 1024);
  CHECK(reinterpret_cast<std::uintptr_t>(first.top) % stack_pool::stride !=
        reinterpret_cast<std::uintptr_t>(second.top) % stack_pool::stride);
  CHECK(reinterpret_cast<std::uintptr_t>(first.top) % 16 == 0);
  pool.give_back(first);
  pool.give_back(second);
  const stack again = pool.take(stack_pool::default_size);
  CHECK(again.bottom == second.bottom);
  pool.give_back(again);
}

TEST_CASE("a stack of another size is mapped for itself", "[stack]") {
  stack_pool pool;
  const stack large = pool.take(1 << 20);
  CHECK(large.size() >= (1 << 20));
  large.bottom[0] = std::byte{1};
  large.top[-1] = std::byte{1};
  pool.give_back(large);
}

TEST_CASE("the guard below a stack cannot be written to", "[stack]") {
  stack_pool pool;
  const stack guarded = pool.take(stack_pool::default_size);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(::write(ends[1], guarded.bottom - 1, 1) == -1);
  CHECK(errno == EFAULT);
  CHECK(::write(ends[1], guarded.bottom - stack_pool::guard, 1) == -1);
  CHECK(::write(ends[1], guarded.bottom, 1) == 1);
  ::close(ends[0]);
  ::close(ends[1]);
  pool.give_back(guarded);
}

TEST_CASE("a stack size that cannot be is refused", "[stack]") {
  CHECK_THROWS_AS(stack_pool::check_size(0), std::invalid_argument);
  CHECK_THROWS_AS(stack_pool::check_size(1000), std::invalid_argument);
  CHECK_THROWS_AS(stack_pool::check_size(~std::size_t{0}), std::invalid_argument);
  CHECK_NOTHROW(stack_pool::check_size(64 * 1024));
}
