// SPDX-License-Identifier: MIT
// What a fiber's switch does for others, polling above all, leaves its errno as it was.
#pragma once

#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class kept_errno {
 public:
  explicit kept_errno(int& live) noexcept : live_(live), kept_(live) {}
  kept_errno(const kept_errno&) = delete;
  kept_errno& operator=(const kept_errno&) = delete;
  ~kept_errno() { live_ = kept_; }

 private:
  int& live_;
  const int kept_;
};

}}}  // namespace motet::MOTET_ABI::detail
