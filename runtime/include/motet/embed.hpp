// SPDX-License-Identifier: MIT
// A thread whose loop is another library's, GLib's or Asio's for example: the loop waits for one
// descriptor more, and has fibers run when it can be read from. The code that the loop calls is the
// thread's main fiber. motet.hpp does not include this.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

/// Returns: a descriptor that can be read from, in the sense of poll(2), whenever run_ready() has
///          something to do. It is the runtime's, and the same until the runtime ends: watch it,
///          and neither read nor close it. In a forked child it is another one.
/// Not a switchpoint.
/// Throws: std::logic_error if the backend cannot be waited for in that way, as "sim"; as
///         run_ready().
int poll_descriptor();

/// Lets each runnable fiber have a turn, and further turns for half a millisecond unless all of
/// them wait, and makes the descriptor ready for the next wait. To be called when the descriptor
/// can be read from, which is also so when code of the loop's own has made a fiber runnable. It
/// never waits. That code may wait, as any main fiber may: but then the whole loop waits.
/// Switchpoint.
/// Throws: the failure of a child of the main fiber; std::logic_error in another fiber than the
///         main one; std::system_error if there is no descriptor left.
void run_ready();

}}  // namespace motet::MOTET_ABI
