// SPDX-License-Identifier: MIT
// Makes an exception object to hand over, in functions that may not throw.
#pragma once

#include <exception>
#include <motet/detail/base/abi.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: an `E` of `arguments`; without memory, the std::bad_alloc that was thrown instead.
template <typename E, typename... Arguments>
std::exception_ptr made_exception(Arguments&&... arguments) noexcept {
  try {
    return std::make_exception_ptr(E(std::forward<Arguments>(arguments)...));
  } catch (...) {
    return std::current_exception();
  }
}

}}}  // namespace motet::MOTET_ABI::detail
