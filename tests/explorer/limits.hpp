// SPDX-License-Identifier: MIT
// How much of a model is explored.
#pragma once

#include <cstddef>
#include <optional>

#include "explorer/mutation.hpp"

namespace explorer {

struct limits {
  std::optional<std::size_t> preemptions;  // in an execution; without it every order is explored
  std::optional<std::size_t> stale_loads;  // the same, of loads that do not return the newest value
  std::size_t executions = 1'000'000;
  std::size_t steps = 1'000;  // of an execution
  std::size_t pauses = 3;     // of a thread in an execution, which has one course from then on
  /// Whether the destruction of an atomic must be ordered behind all accesses to it. A shared_ptr
  /// orders it by counts that the explorer does not see.
  bool checks_destruction = true;
  mutations mistakes;
};

}  // namespace explorer
