// SPDX-License-Identifier: MIT
// Contexts in a circle, and nothing else: each does its work and hands on to the next, whose
// address is in its own line. Only the first counts, a round at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

#include "bare_stacks.hpp"
#include "bare_switch.hpp"
#include "measure.hpp"

namespace bench {

/// Whether the circle goes from each context to its neighbour in memory, which a processor
/// foresees.
enum class ring_order { by_address, shuffled };

/// Work: what a context does each time that it runs.
/// Ahead: how many contexts ahead are fetched; 0 for none, which is quicker while all are in a
/// cache.
template <auto Work, std::size_t Ahead = 0>
class bare_ring {
 public:
  explicit bare_ring(std::size_t size, ring_order order = ring_order::by_address)
      : stacks_(size), contexts_(size) {
    std::vector<std::size_t> turns(size);
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    if (order == ring_order::shuffled) {
      std::shuffle(turns.begin() + 1, turns.end(), std::mt19937(1));
    }
    for (std::size_t turn = 0; turn < size; ++turn) {
      context& each = contexts_[turns[turn]];
      const std::size_t ahead = turns[(turn + Ahead) % size];
      each.next = &contexts_[turns[(turn + 1) % size]];
      each.ahead = &contexts_[ahead];
      each.stack_ahead = stacks_.top(ahead) - 64;
      each.ring = this;
      lay_out(each, stacks_.top(turns[turn]), turn == 0 ? &count_rounds : &go_round);
    }
    per_switch(size);
  }
  bare_ring(const bare_ring&) = delete;
  bare_ring& operator=(const bare_ring&) = delete;

  double per_switch(std::size_t switches) {
    const std::size_t rounds = std::max<std::size_t>(switches / contexts_.size(), 1);
    left_ = rounds + 1;
    return cost(rounds * contexts_.size(), [&] { switch_bare(&home_, &contexts_.front()); });
  }

 private:
  struct alignas(64) context : place {
    context* next = nullptr;
    const context* ahead = nullptr;
    const std::byte* stack_ahead = nullptr;
    bare_ring* ring = nullptr;
  };

  [[gnu::always_inline]] static void work(const context& here) {
    if constexpr (Ahead > 0) {
      __builtin_prefetch(here.ahead, 1);
      __builtin_prefetch(here.stack_ahead, 1);
      __builtin_prefetch(here.stack_ahead - 64, 1);
    }
    Work();
  }

  static void go_round(place*, place* here) {
    for (;;) {
      auto& self = static_cast<context&>(*here);
      work(self);
      here = switch_bare(here, self.next);
    }
  }

  static void count_rounds(place*, place* here) {
    for (;;) {
      auto& self = static_cast<context&>(*here);
      work(self);
      place* next = self.next;
      if (--self.ring->left_ == 0) [[unlikely]]
        next = &self.ring->home_;
      here = switch_bare(here, next);
    }
  }

  bare_stacks stacks_;
  std::vector<context> contexts_;
  place home_;
  std::size_t left_ = 0;
};

}  // namespace bench
