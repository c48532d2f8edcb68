// SPDX-License-Identifier: MIT
// The version of motet. See docs/versions.md for what may change when.
#pragma once

#include <motet/detail/base/abi.hpp>

#define MOTET_VERSION_MAJOR 1
#define MOTET_VERSION_MINOR 0
#define MOTET_VERSION_PATCH 0
/// The suffix of the version number in a pre-release; empty in a release.
#define MOTET_VERSION_SUFFIX "-rc1"

/// The version of these headers as one number, for #if: 1203 is 0.12.3, 10000 is 1.0.0.
#define MOTET_VERSION \
  (MOTET_VERSION_MAJOR * 10000 + MOTET_VERSION_MINOR * 100 + MOTET_VERSION_PATCH)

namespace motet { inline namespace MOTET_ABI {

/// Returns: the version of the library that the program runs with, as "1.0.0" or "1.0.0-rc1"; it
///          may be newer than the headers that the program was built with.
/// Not a switchpoint. Any thread.
const char* version() noexcept;

}}  // namespace motet::MOTET_ABI
