// SPDX-License-Identifier: MIT
// The memory of one stack.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// [bottom, top) is usable; an access below `bottom` faults.
struct stack {
  std::byte* bottom = nullptr;
  std::byte* top = nullptr;

  std::size_t size() const noexcept { return static_cast<std::size_t>(top - bottom); }
};

}}}  // namespace motet::MOTET_ABI::detail
