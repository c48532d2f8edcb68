// SPDX-License-Identifier: MIT
// Bits that look random, from any that differ.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Source: the finalizer of splitmix64 (Steele, Lea, Flood, 2014).
constexpr std::uint64_t mixed_bits(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

}}}  // namespace motet::MOTET_ABI::detail
