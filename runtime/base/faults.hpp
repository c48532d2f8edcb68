// SPDX-License-Identifier: MIT
// Fault injection: with -Dfaults=true a test can make any system call of motet fail, or transfer
// less. Otherwise the calls are unchanged.
#pragma once

#include <cerrno>
#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <type_traits>

#if defined(MOTET_FAULTS)
#include <atomic>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace faults {

/// Not an errno value: the call is to move one byte only, or a queue is full.
inline constexpr int falls_short = -1;

#if defined(MOTET_FAULTS)
inline constexpr bool enabled = true;
/// A function that a test sets.
/// Returns: 0, or the error with which the next call fails.
using chooser = int (*)(const char* call) noexcept;
inline std::atomic<chooser> choose{nullptr};

inline int next(const char* call) noexcept {
  const chooser pick = choose.load();
  return pick == nullptr ? 0 : pick(call);
}
#else
inline constexpr bool enabled = false;
constexpr int next(const char*) noexcept {
  return 0;
}
#endif

/// Calls `function(arguments...)`, or sets errno and returns -1 or MAP_FAILED for a failure.
template <typename Function, typename... Arguments>
auto call(const char* name, Function function, Arguments... arguments) noexcept {
  const int error = next(name);
  if (error == 0) return function(arguments...);
  errno = error;
  using result = decltype(function(arguments...));
  if constexpr (std::is_pointer_v<result>) {
    return reinterpret_cast<result>(std::intptr_t{-1});
  } else {
    return static_cast<result>(-1);
  }
}

}}}}  // namespace motet::MOTET_ABI::detail::faults
