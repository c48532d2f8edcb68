// SPDX-License-Identifier: MIT
// Looking at a thread from inside.
#pragma once

#include <iosfwd>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

/// Writes one line about each fiber of this thread: name, state, what it waits for and for how
/// long, where it was spun. Writes nothing on a thread without a runtime. Not a switchpoint.
void dump(std::ostream& out);

}}  // namespace motet::MOTET_ABI
