// SPDX-License-Identifier: MIT
// See motet/base/version.hpp.
#include <motet/base/version.hpp>

#include "base/version_text.hpp"

namespace motet { inline namespace MOTET_ABI {

const char* version() noexcept {
  return detail::version_text;
}

}}  // namespace motet::MOTET_ABI
