// SPDX-License-Identifier: MIT
// See fd.hpp.

#include <motet/io/fd.hpp>

#include "base/system_calls.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI {

/// Ignores an error of close(2), which tells of writes that failed; io::close() throws it.
void fd::close() noexcept {
  const int number = release();
  if (number < 0) return;
  detail::thread_state* thread = detail::self();
  if (thread != nullptr && !thread->calls.end_all_on(number)) return;
  detail::sys::close(number);
}

}}  // namespace motet::MOTET_ABI
