// SPDX-License-Identifier: MIT
// An exception to hand over where nothing may be thrown.
#pragma once

#include <exception>
#include <motet/detail/words/abi.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: an `E` of `arguments`, or in its place what making it has thrown: there was no memory.
template <typename E, typename... Arguments>
std::exception_ptr made_exception(Arguments&&... arguments) noexcept {
  try {
    return std::make_exception_ptr(E(std::forward<Arguments>(arguments)...));
  } catch (...) {
    return std::current_exception();
  }
}

}}}  // namespace motet::MOTET_ABI::detail
