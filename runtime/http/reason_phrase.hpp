// SPDX-License-Identifier: MIT
// Reason phrases of status codes. Source: RFC 9110, 15; RFC 6585.
#pragma once

#include <motet/http/request.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Returns: an empty text for an unregistered status.
std::string_view reason_phrase(int status) noexcept;

/// Returns: an error with the reason phrase as its text, which becomes the body of the response.
status_error standard_error(int status);

}}}  // namespace motet::MOTET_ABI::http
