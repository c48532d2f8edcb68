// SPDX-License-Identifier: MIT
// Points at which a race is widened: with -Djitter=true a short random delay, otherwise nothing.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

#if defined(MOTET_JITTER)
void race_point() noexcept;
#else
inline void race_point() noexcept {}
#endif

}}}  // namespace motet::MOTET_ABI::detail
