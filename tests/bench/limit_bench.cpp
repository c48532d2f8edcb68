// SPDX-License-Identifier: MIT
// What the machine allows: an intrusive ring of contexts, each of which touches two lines of its
// stack, and nothing else; the first touch of a guarded stack; a throw and a catch.
#include <array>
#include <deque>
#include <motet/detail/context.hpp>
#include <vector>

#include "measure.hpp"
#include "stack_pool.hpp"

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

  explicit bare_ring(std::size_t size) : places(size) {
    for (std::size_t i = 0; i < size; ++i) {
      places[i].next = &places[(i + 1) % size];
      places[i].ring = this;
      places[i].rest = pool.take(stack_pool::default_size);
      motet::detail::lay_out(places[i].where, places[i].rest.top, &go_round, &places[i]);
    }
  }

  static void go_round(void* argument) {
    auto* here = static_cast<place*>(argument);
    std::array<volatile char, 96> frame{};
    for (;;) {
      frame.front() = 1;
      frame.back() = 1;
      place* to = here->next;
      const bool over = --here->ring->left == 0;
      motet::detail::switch_context(here->where, over ? here->ring->home : to->where);
    }
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

constexpr bench::subject subjects[] = {
    {"ring", &ring}, {"touch_and_guard", &touch_and_guard}, {"throw_and_catch", &throw_and_catch}};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
