// SPDX-License-Identifier: MIT
// Runs a model in every way that the scheduler and the memory model permit. A model is a function
// that makes atomics and other state, adds threads, runs them, and checks what they have done.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "explorer/atomic.hpp"
#include "explorer/search.hpp"
#include "explorer/world.hpp"
#include "platform/stack_pool.hpp"

namespace explorer {

struct limits {
  std::optional<std::size_t> preemptions;  // in an execution; without it every order is explored
  std::size_t executions = 1'000'000;
  std::size_t steps = 1'000;  // of an execution
};

struct report {
  std::size_t executions = 0;
  std::size_t redundant = 0;  // executions that were begun, but proved the same as one before
  bool complete = false;      // every execution was explored, and none failed
  std::string failure;        // of the first that failed, and its steps
};

template <typename Model>
report explore(const limits& most, Model model) {
  search choices(most.preemptions);
  motet::detail::stack_pool stacks;
  report result;
  do {
    choices.begin();
    world all(choices, stacks, most.steps);
    model(all);
    ++(choices.is_redundant() ? result.redundant : result.executions);
    if (all.failed()) {
      result.failure = all.failure() + ", after\n";
      for (const event& step : all.events()) result.failure += step.text();
      return result;
    }
    result.complete = !choices.advance();
  } while (!result.complete && result.executions + result.redundant < most.executions);
  return result;
}

template <typename Model>
report explore(Model model) {
  return explore(limits(), model);
}

}  // namespace explorer
