// SPDX-License-Identifier: MIT
// A pointer or number, taken out of its place.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Leaves `left` in the place of a pointer or number.
/// Returns: what was there. In a public header std::exchange() and std::swap() cost each program
///          that includes it a millisecond a type to compile; this function costs next to nothing.
template <typename T>
constexpr T taken(T& from, T left = {}) noexcept {
  T was = from;
  from = left;
  return was;
}

}}}  // namespace motet::MOTET_ABI::detail
