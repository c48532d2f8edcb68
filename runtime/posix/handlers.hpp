// SPDX-License-Identifier: MIT
// The program's signal handlers. The kernel calls one function for all of them, which notes that a
// handler has run, and calls the program's.
#pragma once

#include <signal.h>

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// As sigaction(2), except that the kernel gets that function instead of a handler. Handlers of
/// faults are left alone: they interrupt no call.
int install_handler(int number, const struct sigaction* action,
                    struct sigaction* previous) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
