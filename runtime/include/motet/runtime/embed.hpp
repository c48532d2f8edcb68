// SPDX-License-Identifier: MIT
// A thread whose event loop belongs to another library, for example GLib or Asio: the loop watches
// one more descriptor, and runs fibers when it is readable. The code that the loop calls is the
// thread's main fiber. motet.hpp does not include this.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

/// Returns: a descriptor that is readable, in the sense of poll(2), whenever run_ready() has work.
///          It belongs to the runtime, and is the same until the runtime ends: watch it, but
///          neither read nor close it. In a forked child it is another one.
/// Not a switchpoint.
/// Throws: std::logic_error if the backend has no such descriptor, for example "sim"; as
///         run_ready().
int poll_descriptor();

/// Runs each runnable fiber once, and then continues for up to half a millisecond unless all of
/// them wait; then prepares the descriptor for the next wait. To be called when the descriptor is
/// readable, which includes the case where the loop's own code has made a fiber runnable. It never
/// waits. The loop's own code may wait, like any main fiber, but then the whole loop waits.
/// Switchpoint.
/// Throws: the failure of a child of the main fiber; std::logic_error in a fiber other than the
///         main one; std::system_error if the process has no free descriptor.
void run_ready();

}}  // namespace motet::MOTET_ABI
