// SPDX-License-Identifier: MIT
// Looking at fibers from inside.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {
struct thread_core;
}  // namespace detail

struct dump_options {
  /// The stack of each fiber as well, the innermost function first, as backtrace_symbols(3) writes
  /// them. A function that its object does not export is shown as an offset from the object's load
  /// address, for addr2line(1). A fiber that has not begun has no stack.
  bool stacks = false;
  /// The fibers of all threads with a runtime, under a line for each thread.
  bool all_threads = false;
  /// Children are listed under their parents, indented. Not with group_by_site or json.
  bool tree = false;
  /// One line for all fibers that were spun at one place: how many, what they do, how long the
  /// longest wait is, and with `stacks` the stack of the fiber that waits longest.
  bool group_by_site = false;
  /// An object instead of lines: {"threads": [{"thread": 17, "fibers": [...]}]}, or "groups"
  /// instead of "fibers", or "error" for a thread that has not answered. Times are in milliseconds.
  bool json = false;
};

/// Writes one line about each fiber of this thread: its name and state, what it waits for and for
/// how long, and its call site. Writes nothing on a thread without a runtime. Not a switchpoint.
void dump(std::ostream& output);

/// The same, with options. Each fiber is written before the next one is examined, so writing to
/// `output` must not switch. With options.all_threads, every other thread writes its part when it
/// next polls its inbox; a thread with more than 100,000 fibers groups them by call site. A line
/// reports each thread that has not responded within a second, because it computes or is blocked.
/// Any thread.
/// Switchpoint with options.all_threads, which starts a runtime where there is none; otherwise not
/// a switchpoint.
/// Throws: a pending interruption, with options.all_threads; std::bad_alloc.
void dump(std::ostream& output, const dump_options& options);

/// Writes a line about each fiber of this thread that is certain to wait for ever: in a cycle of
/// fibers that await one another or hold each other's locks; for a lock whose holder has ended; in
/// suspend() while no handle to it exists; or for another such fiber. Excluded are fibers that a
/// timer, a time limit, an operation or another thread can wake, and waits for channels, events and
/// the like, because any fiber may end those. That another fiber could cancel the fiber does not
/// count. Not a switchpoint.
/// Returns: the number of lines, which should be 0 at the end of a test.
/// Throws: std::bad_alloc.
std::size_t dump_leaks(std::ostream& output);

/// While a guard lives, its fiber must not let another fiber of the thread run: a switchpoint that
/// waits, snoozes (even if no other fiber exists) or teleports calls abort(), after a message with
/// the guard's call site and the reason for the wait. It protects code that relies on the absence
/// of other fibers, such as a section under a std::recursive_mutex, which every fiber of the thread
/// may lock again. A call that need not wait is allowed, and does not yield, however often it is
/// made; on io_uring every operation on a descriptor waits. A guard is a local variable; guards
/// nest. A guard takes a few nanoseconds, and does not slow down switches. On a thread without
/// fibers a guard has no effect.
class no_switch_guard {
 public:
  /// Not a switchpoint.
  explicit no_switch_guard(call_site site = call_site::here()) noexcept;
  no_switch_guard(const no_switch_guard&) = delete;
  no_switch_guard& operator=(const no_switch_guard&) = delete;
  ~no_switch_guard();

 private:
  call_site site_;
  const call_site* outer_ = nullptr;
  detail::thread_core* thread_;
};

}}  // namespace motet::MOTET_ABI
