// SPDX-License-Identifier: MIT
// Mistakes that are put into the program under test, to see that its model finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "explorer/controller.hpp"

namespace explorer {

/// A change of the accesses to atomics in a function. Operators of an atomic are left out: they do
/// not know where they are called.
struct mutation {
  enum class kind : std::uint8_t {
    relaxed,  // memory_order_relaxed
    blind,    // a load returns `value`, as if the check after it were missing
    torn,     // an exchange, compared or not, is a load and then a store
  };

  kind what;
  std::string_view place;  // "FUNCTION", or "FILE:FUNCTION"
  bits value = 0;
  bool crashes = false;  // the mistake may spoil the memory of the program

  bool matches(kind asked, const site& where) const {
    if (what != asked) return false;
    const std::size_t colon = place.find(':');
    if (colon == place.npos) return place == where.function;
    return place.substr(colon + 1) == where.function &&
           std::string_view(where.file).ends_with(place.substr(0, colon));
  }
};

using mutations = std::vector<mutation>;

inline const mutation* find(const mutations& all, mutation::kind what, const site& where) {
  for (const mutation& one : all) {
    if (one.matches(what, where)) return &one;
  }
  return nullptr;
}

}  // namespace explorer
