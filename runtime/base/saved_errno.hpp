// SPDX-License-Identifier: MIT
// Keeps a fiber's errno while its thread polls, or does other work of a switch, on its stack.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class saved_errno {
 public:
  explicit saved_errno(int& live) noexcept : live_(live), value_(live) {}
  saved_errno(const saved_errno&) = delete;
  saved_errno& operator=(const saved_errno&) = delete;
  ~saved_errno() { live_ = value_; }

 private:
  int& live_;
  const int value_;
};

}}}  // namespace motet::MOTET_ABI::detail
