// SPDX-License-Identifier: MIT
// Points in time as HTTP writes them. Source: RFC 9110, 5.6.7.
#pragma once

#include <ctime>
#include <motet/detail/base/abi.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Returns: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string date_of(std::time_t time);
/// Returns: the current time in this format; valid until the thread's next call.
std::string_view date_of_now() noexcept;
/// Returns: nothing if `text` is no such date; the older ways to write one are not known.
std::optional<std::time_t> time_of(std::string_view text) noexcept;

}}}  // namespace motet::MOTET_ABI::http
