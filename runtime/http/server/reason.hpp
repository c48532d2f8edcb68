// SPDX-License-Identifier: MIT
// What a status is called. Source: RFC 9110, 15; RFC 6585.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Returns: an empty text for a status without a name.
std::string_view reason_phrase(int status) noexcept;

}}}  // namespace motet::MOTET_ABI::http
