// SPDX-License-Identifier: MIT
// Which process this is: a forked child has a copy of its parent's memory, but not of the threads
// and fibers that used it.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

extern std::atomic<std::uint32_t> process_generation;

/// Returns: how often this process has been forked since it began as another.
inline std::uint32_t this_process() noexcept {
  return process_generation.load(std::memory_order_relaxed);
}

}}}  // namespace motet::MOTET_ABI::detail
