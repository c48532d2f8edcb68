// SPDX-License-Identifier: MIT
// Notices: lines for the operator, through options.on_notice.
#pragma once

#include <motet/runtime/options.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Passes `line` to settings.on_notice, which may wait; without one, or if that throws, prints it.
void notice(const options& settings, std::string_view line) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
