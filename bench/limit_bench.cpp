// SPDX-License-Identifier: MIT
// What the machine allows: a bare ring of contexts, whose stacks are touched or not; the least that
// is spun and awaited; the first touch of a guarded stack; a throw and a catch, on one stack or on
// many; a bare heap of timers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <vector>

#include "bare_fibers.hpp"
#include "bare_heap.hpp"
#include "bare_ring.hpp"
#include "measure.hpp"
#include "platform/stack_pool.hpp"
#include "platform/ticks.hpp"

namespace {

using bench::bare_fibers;
using bench::bare_ring;
using bench::ring_order;
using motet::detail::stack_pool;

void touch_nothing() {}

/// As a function does that has a few variables: two lines of the stack are written.
[[gnu::always_inline]] inline void touch_two_lines() {
  std::array<volatile char, 96> frame;
  frame.front() = 1;
  frame.back() = 1;
}

/// Few contexts are in a cache, and to fetch ahead is in vain.
constexpr std::size_t few = 2'000;

/// Returns: the least of several ways to fetch ahead.
template <auto Work>
double ring_of(std::size_t contexts, std::size_t switches, ring_order order) {
  const double plain = bare_ring<Work>(contexts, order).per_switch(switches);
  if (contexts < few) return plain;
  return std::min({plain, bare_ring<Work, 4>(contexts, order).per_switch(switches),
                   bare_ring<Work, 8>(contexts, order).per_switch(switches),
                   bare_ring<Work, 16>(contexts, order).per_switch(switches)});
}

double ring(std::size_t contexts, std::size_t switches) {
  return ring_of<&touch_two_lines>(contexts, switches, ring_order::by_address);
}

double ring_shuffled(std::size_t contexts, std::size_t switches) {
  return ring_of<&touch_two_lines>(contexts, switches, ring_order::shuffled);
}

double ring_untouched(std::size_t contexts, std::size_t switches) {
  return ring_of<&touch_nothing>(contexts, switches, ring_order::by_address);
}

double spin_await(std::size_t, std::size_t rounds) {
  bare_fibers all(1);
  std::size_t sum = 0;
  return bench::cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) all.await(all.spin([&sum] { ++sum; }));
  });
}

double spin_all_await_all(bare_fibers& all, std::size_t count) {
  std::size_t sum = 0;
  std::vector<bare_fibers::task*> tasks;
  tasks.reserve(count);
  return bench::cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) tasks.push_back(all.spin([&sum] { ++sum; }));
    for (auto* each : tasks) all.await(each);
  });
}

double spun_cold(std::size_t count, std::size_t) {
  bare_fibers all(1);
  return spin_all_await_all(all, count);
}

double spun_warm(std::size_t count, std::size_t) {
  bare_fibers all(1);
  spin_all_await_all(all, count);
  return spin_all_await_all(all, count);
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

void throw_and_catch_here() {
  try {
    throw reason_to_end{"to end", 1, motet::call_site::here()};
  } catch (const reason_to_end&) {
  }
}

double throw_on_each(std::size_t contexts, std::size_t) {
  return bare_ring<&throw_and_catch_here>(contexts).per_switch(contexts);
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

/// How quick the processor is just now: multiplications that wait for one another, and reads all
/// over what a cache of the second level cannot hold. It takes a few milliseconds.
double probe(std::size_t, std::size_t) {
  constexpr std::size_t steps = 200'000;
  std::vector<std::uint32_t> memory(std::size_t{1} << 20, 1);
  return bench::cost(steps, [&] {
    std::uint32_t at = 1;
    for (std::size_t i = 0; i < steps; ++i) {
      at = at * 1664525U + 1013904223U * memory[at >> 12];
    }
    memory.front() = at;
    asm volatile("" : : "r"(memory.data()) : "memory");
  });
}

constexpr bench::subject subjects[] = {{"probe", &probe},
                                       {"ring", &ring},
                                       {"ring_shuffled", &ring_shuffled},
                                       {"ring_untouched", &ring_untouched},
                                       {"spin_await", &spin_await},
                                       {"spun_cold", &spun_cold},
                                       {"spun_warm", &spun_warm},
                                       {"touch_and_guard", &touch_and_guard},
                                       {"throw_and_catch", &throw_and_catch},
                                       {"throw_on_each", &throw_on_each},
                                       {"heap_push_remove", &heap_push_remove}};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
