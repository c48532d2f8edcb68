// SPDX-License-Identifier: MIT
// What the machine allows: an intrusive ring of contexts, each of which touches two lines of its
// stack, and nothing else; the first touch of a guarded stack; a throw and a catch, on one stack or
// on many; a bare heap of timers.
#include <array>
#include <cstdint>
#include <deque>
#include <motet/call_site.hpp>
#include <motet/detail/ground/context.hpp>
#include <vector>

#include "bare_heap.hpp"
#include "ground/stack_pool.hpp"
#include "ground/ticks.hpp"
#include "measure.hpp"

namespace {

using motet::detail::context;
using motet::detail::stack;
using motet::detail::stack_pool;

struct bare_ring {
  struct place {
    context where;
    place* next = nullptr;
    bare_ring* ring = nullptr;
    stack rest;
  };

  explicit bare_ring(std::size_t size, motet::detail::entry_function entry = &go_round)
      : places(size) {
    for (std::size_t i = 0; i < size; ++i) {
      places[i].next = &places[(i + 1) % size];
      places[i].ring = this;
      places[i].rest = pool.take(stack_pool::default_size);
      motet::detail::lay_out(places[i].where, places[i].rest.top, entry, &places[i]);
    }
  }

  static void go_round(void* argument) {
    auto* here = static_cast<place*>(argument);
    std::array<volatile char, 96> frame{};
    for (;;) {
      frame.front() = 1;
      frame.back() = 1;
      hand_on(*here);
    }
  }

  [[gnu::always_inline]] static void hand_on(place& here) {
    place* to = here.next;
    const bool over = --here.ring->left == 0;
    motet::detail::switch_context(here.where, over ? here.ring->home : to->where);
  }

  double per_switch(std::size_t switches) {
    left = switches;
    return bench::cost(switches,
                       [&] { motet::detail::switch_context(home, places.front().where); });
  }

  stack_pool pool;
  std::deque<place> places;
  context home;
  std::size_t left = 0;
};

double ring(std::size_t contexts, std::size_t switches) {
  bare_ring all(contexts);
  all.per_switch(contexts + 1);
  return all.per_switch(switches);
}

/// What a stack that was never used costs before anybody does anything with it.
double touch_and_guard(std::size_t stacks, std::size_t) {
  stack_pool pool;
  return bench::cost(stacks, [&] {
    for (std::size_t i = 0; i < stacks; ++i) {
      *reinterpret_cast<volatile std::byte*>(pool.take(stack_pool::default_size).top - 64) =
          std::byte{1};
    }
  });
}

struct stone {};

double throw_and_catch(std::size_t, std::size_t rounds) {
  return bench::cost(rounds, [&] {
    for (std::size_t round = 0; round < rounds; ++round) {
      try {
        throw stone();
      } catch (const stone&) {
      }
    }
  });
}

/// As large as motet::cancelled.
struct reason_to_end {
  const char* reason;
  std::uint64_t id;
  motet::call_site asked_at;
};

/// Parks; then throws and catches each time that it is switched to.
void throw_in_turn(void* argument) {
  auto* here = static_cast<bare_ring::place*>(argument);
  for (;;) {
    bare_ring::hand_on(*here);
    try {
      throw reason_to_end{"to end", 1, motet::call_site::here()};
    } catch (const reason_to_end&) {
    }
  }
}

double throw_on_each(std::size_t contexts, std::size_t) {
  bare_ring all(contexts, &throw_in_turn);
  all.per_switch(contexts);
  return all.per_switch(contexts);
}

/// Puts a timer that is due before the `armed` others into a heap and takes it out again, with one
/// look at the counter.
double heap_push_remove(std::size_t armed, std::size_t rounds) {
  bench::bare_heap heap;
  std::vector<bench::bare_heap::node> others(armed);
  constexpr std::uint64_t hours_ahead = std::uint64_t{1} << 50;
  for (std::size_t i = 0; i < armed; ++i) {
    heap.push(hours_ahead + static_cast<std::uint64_t>(bench::sleep_of(i)) * 1'000'000, others[i]);
  }
  const std::uint64_t start = motet::detail::ticks();
  bench::bare_heap::node own;
  return bench::cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      heap.push(motet::detail::ticks() - start, own);
      heap.remove(own);
    }
  });
}

constexpr bench::subject subjects[] = {{"ring", &ring},
                                       {"touch_and_guard", &touch_and_guard},
                                       {"throw_and_catch", &throw_and_catch},
                                       {"throw_on_each", &throw_on_each},
                                       {"heap_push_remove", &heap_push_remove}};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
