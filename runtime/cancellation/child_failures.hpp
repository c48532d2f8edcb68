// SPDX-License-Identifier: MIT
// The failures of a fiber's children that the fiber has not been told of: a list in its cold part.
// On the fiber's home thread.
#pragma once

#include <exception>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Recomputes whether a child's failure is pending.
[[gnu::noinline]] void refresh_failures(control_block& fiber) noexcept;
/// Returns: the first failed child of that family (any, if null) that the fiber was not told of.
[[gnu::noinline]] control_block* take_failure(control_block& parent, const family* group) noexcept;
/// Returns: what that child has failed with, or null.
std::exception_ptr take_error_of_child(control_block& parent) noexcept;
/// Another fiber has claimed the failure of a dead one before the parent was told.
void withdraw_failure(control_block& child) noexcept;
/// The same for a fiber of another thread, whose proxy is on `thread` if its parent is.
void spare_proxy_of(const control_block& child, const thread_core& thread) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
