// SPDX-License-Identifier: MIT
// What nobody can be told any more.
#pragma once

#include <exception>
#include <motet/options.hpp>

namespace motet::inline MOTET_ABI::detail {

/// Gives `error` to settings.on_unhandled; without one, prints a line and lets the process end with
/// exit code 1. Any thread.
[[gnu::noinline]] void tell_unhandled(const options& settings,
                                      const std::exception_ptr& error) noexcept;

}  // namespace motet::inline MOTET_ABI::detail
