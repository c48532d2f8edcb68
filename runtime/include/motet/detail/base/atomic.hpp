// SPDX-License-Identifier: MIT
// The atomics of the protocols between threads: std::atomic, or in a build with -Dexplorer=true one
// that lets a controller choose the order of accesses and what a load returns (tests/explorer).
// Settings, statistics, caches of memory and what signal handlers share are a std::atomic always.
#pragma once

#include <atomic>
#include <motet/detail/base/abi.hpp>

#if defined(MOTET_EXPLORED)
#include "explorer/atomic.hpp"
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

#if defined(MOTET_EXPLORED)
template <typename T>
using atomic = explorer::atomic<T>;
#else
template <typename T>
using atomic = std::atomic<T>;
#endif

}}}  // namespace motet::MOTET_ABI::detail
