// SPDX-License-Identifier: MIT
// Looking at fibers from inside.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <motet/call_site.hpp>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {
struct thread_core;
}  // namespace detail

struct dump_options {
  /// The stack of each fiber as well, the innermost function first, as backtrace_symbols(3) writes
  /// them. A function that its object does not export is an offset from where the object was
  /// loaded, for addr2line(1). A fiber that has not begun has no stack.
  bool stacks = false;
  /// The fibers of all threads with a runtime, under a line for each thread.
  bool all_threads = false;
  /// Children are told of under their parents, and indented. Not with group_by_site or json.
  bool tree = false;
  /// One line for all fibers that were spun at one place: how many, what they do, how long the
  /// longest wait is, and with `stacks` the stack of the fiber that waits longest.
  bool group_by_site = false;
  /// An object instead of lines: {"threads": [{"thread": 17, "fibers": [...]}]}, or "groups"
  /// instead of "fibers", or "error" for a thread that has not answered. Times are in milliseconds.
  bool json = false;
};

/// Writes one line about each fiber of this thread: name, state, what it waits for and for how
/// long, where it was spun. A thread without a runtime has none. Not a switchpoint.
void dump(std::ostream& out);

/// The same, with options. Each fiber is written before the next one is examined, so writing to
/// `out` must not switch. With how.all_threads, every other thread writes its part when it next
/// polls its inbox; a thread with more than 100,000 fibers groups them by call site. A line reports
/// each thread that has not responded within a second, because it computes or is blocked. Any
/// thread.
/// Switchpoint with how.all_threads, which starts a runtime where there is none; otherwise not a
/// switchpoint.
/// Throws: a pending interruption, with how.all_threads; std::bad_alloc.
void dump(std::ostream& out, const dump_options& how);

/// Writes a line about each fiber of this thread that is certain to wait for ever: in a cycle of
/// fibers that await one another or hold each other's locks; for a lock whose holder has ended; in
/// suspend() while no handle to it exists; or for another such fiber. Excluded are fibers that a
/// timer, a time limit, an operation or another thread can wake, and waits for channels, events and
/// the like, because any fiber may end those. That another fiber could cancel the fiber does not
/// count. Not a switchpoint.
/// Returns: the number of lines, which should be 0 at the end of a test.
/// Throws: std::bad_alloc.
std::size_t dump_leaks(std::ostream& out);

/// While a guard lives, its fiber must not leave the thread to others: a switchpoint at which it
/// would, because it waits, snoozes (even if no other fiber is there) or goes to another thread,
/// ends the process by abort(), and says where the guard was made and what the fiber waits for. For
/// code that relies on nothing being changed by another fiber of its thread meanwhile, as what is
/// locked by a std::recursive_mutex: every fiber of the thread may lock it again. A call that need
/// not wait passes, and gives way to nobody, however many there are; on io_uring every
/// operation on a descriptor waits. A guard is a local variable; guards nest. A guard takes some
/// nanoseconds, a switch no longer than without. On a thread without fibers a guard does nothing.
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
