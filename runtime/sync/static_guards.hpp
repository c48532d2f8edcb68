// SPDX-License-Identifier: MIT
// Round a fork; see sync/static_guards.cpp.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace static_guards {

void lock() noexcept;
void unlock() noexcept;

}}}}  // namespace motet::MOTET_ABI::detail::static_guards
