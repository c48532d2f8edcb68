// SPDX-License-Identifier: MIT
// The signal that makes every motet thread of the process write its dump to stderr.
#pragma once

#include <motet/runtime/options.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the signal that was chosen by an option or by MOTET_DUMP_SIGNAL; 0: none.
/// Throws: std::invalid_argument if that cannot be.
int dump_signal(const options& settings);

/// From now on the process answers it. A handler that the program had before is called as well.
/// Throws: std::system_error.
void answer_dump_signal(int signal);
/// Returns: whether it answers one.
bool answers_dump_signal() noexcept;

}}}  // namespace motet::MOTET_ABI::detail
