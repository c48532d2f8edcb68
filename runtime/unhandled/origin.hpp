// SPDX-License-Identifier: MIT
// Notes which fiber an exception has come from, for origin().
#pragma once

#include <exception>
#include <motet/detail/core/control_block.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace origins {

/// Notes that `error`, which may be null, has left the body of the running fiber `fiber`. The first
/// note of an exception stays.
[[gnu::noinline]] void note(const std::exception_ptr& error, const control_block& fiber) noexcept;

/// Called around a fork.
void lock() noexcept;
void unlock() noexcept;

}}}}  // namespace motet::MOTET_ABI::detail::origins
