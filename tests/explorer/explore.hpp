// SPDX-License-Identifier: MIT
// Runs a model in every order of its steps and with every store that a load may read, up to limits.
// A model is a function that makes atomics and other state, adds threads, runs them, and checks
// what they have done.
#pragma once

#include <cstddef>
#include <string>

#include "explorer/limits.hpp"
#include "explorer/model.hpp"
#include "explorer/search.hpp"
#include "explorer/world.hpp"
#include "platform/stack_pool.hpp"

namespace explorer {

struct report {
  std::size_t executions = 0;
  std::size_t redundant = 0;     // begun, but found to repeat another one
  std::size_t limited = 0;       // with more pauses than the limit
  bool complete = false;         // every execution was explored, and none failed
  bool is_inconclusive = false;  // the failure is the explorer's own
  std::string failure;           // of the first that failed, and its steps

  std::size_t begun() const { return executions + redundant + limited; }
};

/// Runs one execution, and counts it.
template <typename Model>
void execute(const limits& most, Model& model, search& choices, motet::detail::stack_pool& stacks,
             report& result) {
  choices.begin();
  world all(choices, stacks, most);
  all.begin([&] { model(all); });
  ++(choices.is_redundant() ? result.redundant
     : choices.is_limited() ? result.limited
                            : result.executions);
  if (!all.failed()) return;
  result.is_inconclusive = all.is_inconclusive();
  result.failure = all.failure() + ", after\n";
  for (const event& step : all.events()) result.failure += step.text();
}

/// The first execution is run twice: it may initialize static variables, and reserve memory for
/// later ones.
template <typename Model>
report explore(const limits& most, Model model) {
  motet::detail::stack_pool stacks;
  report result;
  search first(most.preemptions);
  execute(most, model, first, stacks, result);
  result.executions = result.redundant = result.limited = 0;
  search choices(most.preemptions);
  while (result.failure.empty() && !result.complete && result.begun() < most.executions) {
    execute(most, model, choices, stacks, result);
    result.complete = result.failure.empty() && !choices.advance();
  }
  return result;
}

template <typename Model>
report explore(Model model) {
  return explore(limits(), model);
}

}  // namespace explorer
