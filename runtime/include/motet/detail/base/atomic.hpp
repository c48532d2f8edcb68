// SPDX-License-Identifier: MIT
// The atomics by which threads synchronize: std::atomic, or in a build with -Dexplorer=true one
// that lets a controller choose the order of accesses and what a load returns (tests/explorer).
// What only signal handlers, statistics or forked children look at is a std::atomic in every build.
#pragma once

#include <atomic>
#include <motet/detail/base/abi.hpp>

#if defined(MOTET_EXPLORED)
#include "explorer/atomic.hpp"
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

#if defined(MOTET_EXPLORED)
using explorer::atomic;
#else
using std::atomic;
#endif

}}}  // namespace motet::MOTET_ABI::detail
