// SPDX-License-Identifier: MIT
// A descriptor that is closed with its owner.
#pragma once

#include <motet/detail/base/abi.hpp>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct owned_descriptor {
  explicit owned_descriptor(int descriptor) noexcept : number(descriptor) {}
  owned_descriptor(const owned_descriptor&) = delete;
  owned_descriptor& operator=(const owned_descriptor&) = delete;
  ~owned_descriptor() {
    if (number >= 0) sys::close(number);
  }
  int number;
};

}}}  // namespace motet::MOTET_ABI::detail
