// SPDX-License-Identifier: MIT
// MOTET_DISABLE names features of the kernel that motet, which probes for them, is not to use.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <motet/detail/base/abi.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

inline constexpr std::array<std::string_view, 11> features = {
    "defer_taskrun",      // io_uring: task work only when the thread asks; else COOP_TASKRUN
    "registered_ring",    // io_uring: the ring's descriptor is registered
    "newer_operations",   // io_uring: operations that Linux 6.1 does not have
    "no_sqarray",         // io_uring: a ring without an array of indices
    "absolute_timeouts",  // io_uring: the thread waits until a time, not for a span
    "no_iowait",          // io_uring: a waiting thread is idle, not in iowait
    "pipe_nowait",        // pipes in blocking mode know RWF_NOWAIT
    "process_madvise",    // stacks: many guards in one call
    "guard",              // stacks: MADV_GUARD_INSTALL; else mprotect(2)
    "stack_reuse",      // stacks: a stack that is given back serves the next fiber; else it faults
    "overflow_report",  // the line that reports a stack overflow
};

/// Calls `use(word)` for each word between commas.
template <typename F>
void for_each_word(std::string_view list, F use) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end > 0) use(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

inline std::string_view disabled_list() noexcept {
  const char* list = std::getenv("MOTET_DISABLE");
  return list == nullptr ? std::string_view() : std::string_view(list);
}

inline bool disabled(std::string_view feature) noexcept {
  bool known_feature = false;
  for_each_word(disabled_list(),
                [&](std::string_view word) { known_feature = known_feature || word == feature; });
  return known_feature;
}

/// Throws: std::invalid_argument if MOTET_DISABLE names an unknown feature.
inline void check_disabled() {
  for_each_word(disabled_list(), [](std::string_view word) {
    std::string names;
    for (const std::string_view feature : features) {
      if (feature == word) return;
      names += (names.empty() ? "" : ", ") + std::string(feature);
    }
    throw std::invalid_argument("MOTET_DISABLE names \"" + std::string(word) +
                                "\"; there are: " + names);
  });
}

}}}  // namespace motet::MOTET_ABI::detail
