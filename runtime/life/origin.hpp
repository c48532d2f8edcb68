// SPDX-License-Identifier: MIT
// Notes which fiber an exception has come from, for origin().
#pragma once

#include <exception>
#include <motet/detail/heart/control_block.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace origins {

/// `error`, which may be null, has left the body of `fiber`, which runs; the first note stays.
[[gnu::noinline]] void note(const std::exception_ptr& error, const control_block& fiber) noexcept;

/// Around a fork.
void lock() noexcept;
void unlock() noexcept;

}}}}  // namespace motet::MOTET_ABI::detail::origins
