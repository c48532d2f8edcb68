// SPDX-License-Identifier: MIT
// A pointer or number, taken out of its place.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Sets a pointer or number to `left`.
/// Returns: the former value. In a public header std::exchange() and std::swap() cost each program
///          that includes it a millisecond per type to compile; this function costs almost nothing.
template <typename T>
constexpr T taken(T& from, T left = {}) noexcept {
  T was = from;
  from = left;
  return was;
}

}}}  // namespace motet::MOTET_ABI::detail
