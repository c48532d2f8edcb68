// SPDX-License-Identifier: MIT
// See motet/base/version.hpp.
#include <motet/base/version.hpp>

namespace motet { inline namespace MOTET_ABI {

#define MOTET_WITH_DOTS(major, minor, patch) \
  MOTET_EXPANDED(major) "." MOTET_EXPANDED(minor) "." MOTET_EXPANDED(patch)

const char* version() noexcept {
  return MOTET_WITH_DOTS(MOTET_VERSION_MAJOR, MOTET_VERSION_MINOR, MOTET_VERSION_PATCH)
      MOTET_VERSION_SUFFIX;
}

}}  // namespace motet::MOTET_ABI
