// SPDX-License-Identifier: MIT
// Which process this is: a forked child finds what its parent had, but whoever used it is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

extern std::atomic<std::uint32_t> process_generation;

/// Returns: how often this process has been forked since it began as another.
inline std::uint32_t this_process() noexcept {
  return process_generation.load(std::memory_order_relaxed);
}

}}}  // namespace motet::MOTET_ABI::detail
