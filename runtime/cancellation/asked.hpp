// SPDX-License-Identifier: MIT
// How the reason of a request to end is put together: which fiber asks, and why that fiber is to
// end itself, if it is.
#pragma once

#include <motet/base/errors.hpp>
#include <motet/detail/core/control_block.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// `asker` runs, or has just died, or is one whose grace is over. A proxy hands on what it was
/// asked itself.
cancel_reason asked_by(control_block& asker, const char* text, call_site site = {}) noexcept;
/// The running fiber asks, or nobody on a thread without fibers. No text is "".
cancel_reason asked_here(const char* text, call_site site = {}) noexcept;

inline cancel_reason termination_by(control_block& asker) noexcept {
  return asked_by(asker, "it was terminated");
}
inline cancel_reason termination_here(call_site site = {}) noexcept {
  return asked_here("it was terminated", site);
}

}}}  // namespace motet::MOTET_ABI::detail
