// SPDX-License-Identifier: MIT
// Which fibers of a thread wait for ever, as far as that can be known: see dump_leaks() in
// motet/observe/debug.hpp.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// Called on the thread itself. Returns: the number of lines written.
std::size_t dump_leaks(thread_state& thread, std::ostream& output);

}}}  // namespace motet::MOTET_ABI::detail
