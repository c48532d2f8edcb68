// SPDX-License-Identifier: MIT
// Fault points: with -Dfaults=true a test can have any call that motet makes of the kernel be
// refused, or fall short. Otherwise the calls are made as they are.
#pragma once

#include <cerrno>
#include <cstdint>
#include <motet/detail/words/abi.hpp>
#include <type_traits>

#if defined(MOTET_FAULTS)
#include <atomic>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace faults {

/// Not an errno value: the call is to move one byte only, or a queue is full.
inline constexpr int falls_short = -1;

#if defined(MOTET_FAULTS)
inline constexpr bool enabled = true;
/// Set by a test.
/// Returns: 0, or how the call that is about to be made fails.
using chooser = int (*)(const char* call) noexcept;
inline std::atomic<chooser> choose{nullptr};

inline int next(const char* call) noexcept {
  const chooser chosen = choose.load();
  return chosen == nullptr ? 0 : chosen(call);
}
#else
inline constexpr bool enabled = false;
constexpr int next(const char*) noexcept {
  return 0;
}
#endif

/// Calls `function(arguments...)`, or sets errno and returns what stands for a failure: -1, or
/// MAP_FAILED.
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
