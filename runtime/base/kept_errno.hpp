// SPDX-License-Identifier: MIT
// Keeps a fiber's errno while its thread polls, or does other work of a switch, on its stack.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class kept_errno {
 public:
  explicit kept_errno(int& live) noexcept : live_(live), value_(live) {}
  kept_errno(const kept_errno&) = delete;
  kept_errno& operator=(const kept_errno&) = delete;
  ~kept_errno() { live_ = value_; }

 private:
  int& live_;
  const int value_;
};

}}}  // namespace motet::MOTET_ABI::detail
