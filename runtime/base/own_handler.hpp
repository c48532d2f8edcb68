// SPDX-License-Identifier: MIT
// Signal handlers that motet installs for itself. They must not affect the program's calls.
#pragma once

#include <signal.h>

#include <motet/detail/base/abi.hpp>

/// Defined by motet-posix, where any other handler makes waiting calls fail with EINTR.
extern "C" [[gnu::weak]] int motet_install_own_handler(int number, const struct sigaction* action,
                                                       struct sigaction* previous) noexcept;

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// As sigaction(2), for a handler that is motet's.
inline int install_own(int number, const struct sigaction* action,
                       struct sigaction* previous) noexcept {
  return motet_install_own_handler != nullptr ? motet_install_own_handler(number, action, previous)
                                              : ::sigaction(number, action, previous);
}

}}}  // namespace motet::MOTET_ABI::detail
