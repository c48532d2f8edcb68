// SPDX-License-Identifier: MIT
// The dump of all threads: each thread writes its own part.
#pragma once

#include <iosfwd>
#include <motet/observe/debug.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// See motet::dump().
void dump_threads(std::ostream& output, const dump_options& options);

}}}  // namespace motet::MOTET_ABI::detail
