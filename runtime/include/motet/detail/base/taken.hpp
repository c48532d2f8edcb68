// SPDX-License-Identifier: MIT
// A pointer or number, taken out of its place.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Sets a pointer or number to `replacement`.
/// Returns: the former value. In a public header std::exchange() and std::swap() cost each program
///          that includes it a millisecond per type to compile; this function costs almost nothing.
template <typename T>
constexpr T taken(T& source, T replacement = {}) noexcept {
  T was = source;
  source = replacement;
  return was;
}

}}}  // namespace motet::MOTET_ABI::detail
