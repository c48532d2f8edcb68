// SPDX-License-Identifier: MIT
// Where a debugger finds the fibers of a process, alive or in a core file, of a build without any
// debugging information: a page of numbers, whose order scripts/debuggers/motet_fibers.py knows.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// Writes the page, if it is not written yet; all threads would write the same.
void write_debugger_page(thread_state& thread) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
