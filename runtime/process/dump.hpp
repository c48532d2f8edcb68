// SPDX-License-Identifier: MIT
// One line about each fiber of a thread.
#pragma once

#include <iosfwd>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// Writes of each fiber its name, its state, what it waits for and for how long, and where it was
/// spun.
void dump(thread_state& thread, std::ostream& out);

}}}  // namespace motet::MOTET_ABI::detail
