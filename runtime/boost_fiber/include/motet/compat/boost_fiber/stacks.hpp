// SPDX-License-Identifier: MIT
// The stack allocators of Boost.Fiber. Only their sizes matter: every stack is one of motet's, with
// a guard page below. Stacks of the default size are reused.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <optional>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

class fixedsize_stack {
 public:
  struct traits_type {
    /// Returns: bytes. Not a switchpoint.
    static std::size_t page_size() noexcept {
      return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    }
    static constexpr std::size_t minimum_size() noexcept { return std::size_t{32} * 1024; }
    static constexpr std::size_t default_size() noexcept { return std::size_t{96} * 1024; }
  };

  /// The default of the thread: options.stack_size.
  /// Not a switchpoint.
  fixedsize_stack() noexcept = default;
  /// A size below traits_type::minimum_size() counts as that size. The other parameters of
  /// pooled_fixedsize_stack have no effect.
  /// Not a switchpoint.
  explicit fixedsize_stack(std::size_t size, std::size_t = 0, std::size_t = 0) noexcept
      : size_(std::max(size, traits_type::minimum_size())) {}

  /// Returns: bytes; std::nullopt for the default. Not a switchpoint.
  std::optional<std::size_t> size() const noexcept { return size_; }

 private:
  std::optional<std::size_t> size_;
};

using default_stack = fixedsize_stack;
using protected_fixedsize_stack = fixedsize_stack;
using pooled_fixedsize_stack = fixedsize_stack;

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
