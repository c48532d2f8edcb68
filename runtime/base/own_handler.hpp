// SPDX-License-Identifier: MIT
// Signal handlers of motet's own, of which a program's calls must not notice anything.
#pragma once

#include <signal.h>

#include <motet/detail/base/abi.hpp>

/// Defined by motet-posix, which otherwise has the program's waiting calls end when a handler runs.
extern "C" [[gnu::weak]] int motet_install_own_handler(int number, const struct sigaction* action,
                                                       struct sigaction* previous) noexcept;

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// As sigaction(2), for a handler of motet's own.
inline int install_own(int number, const struct sigaction* action,
                       struct sigaction* previous) noexcept {
  return motet_install_own_handler != nullptr ? motet_install_own_handler(number, action, previous)
                                              : ::sigaction(number, action, previous);
}

}}}  // namespace motet::MOTET_ABI::detail
