// SPDX-License-Identifier: MIT
// The version of these sources as a text.
#pragma once

#include <motet/base/version.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

#define MOTET_WITH_DOTS(major, minor, patch) \
  MOTET_EXPANDED(major) "." MOTET_EXPANDED(minor) "." MOTET_EXPANDED(patch)

constexpr char version_text[] = MOTET_WITH_DOTS(MOTET_VERSION_MAJOR, MOTET_VERSION_MINOR,
                                                MOTET_VERSION_PATCH) MOTET_VERSION_SUFFIX;

#undef MOTET_WITH_DOTS

}}}  // namespace motet::MOTET_ABI::detail
