// SPDX-License-Identifier: MIT
// The sections of posix.hpp in which the running fiber is.
#pragma once

#include <motet/posix.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: whether it is in posix::plain().
bool in_plain_section() noexcept;
/// Returns: the error of a call that a time limit has ended: that of the innermost
///          posix::deadline_as, or ECANCELED.
int deadline_error() noexcept;

}}}  // namespace motet::MOTET_ABI::detail
