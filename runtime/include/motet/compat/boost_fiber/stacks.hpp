// SPDX-License-Identifier: MIT
// The stack allocators of Boost.Fiber. Only their sizes count: each stack is one of motet's, which
// are pooled, and have a guard page below.
#pragma once

#include <cstddef>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

class fixedsize_stack {
 public:
  struct traits_type {
    /// Returns: bytes. Not a switchpoint.
    static constexpr std::size_t default_size() noexcept { return std::size_t{128} * 1024; }
  };

  /// Not a switchpoint.
  explicit fixedsize_stack(std::size_t size = traits_type::default_size()) noexcept : size_(size) {}

  /// Returns: how many bytes a fiber's stack is to have. Not a switchpoint.
  std::size_t size() const noexcept { return size_; }

 private:
  std::size_t size_;
};

using default_stack = fixedsize_stack;
using protected_fixedsize_stack = fixedsize_stack;
using pooled_fixedsize_stack = fixedsize_stack;

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
