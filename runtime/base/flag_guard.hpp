// SPDX-License-Identifier: MIT
// Sets a flag for as long as it lives.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class flag_guard {
 public:
  explicit flag_guard(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  flag_guard(const flag_guard&) = delete;
  flag_guard& operator=(const flag_guard&) = delete;
  ~flag_guard() { flag_ = false; }

 private:
  bool& flag_;
};

}}}  // namespace motet::MOTET_ABI::detail
