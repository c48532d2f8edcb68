// SPDX-License-Identifier: MIT
// What can be chosen when a thread's runtime starts.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <motet/runtime/backend.hpp>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI {

/// What a thread records of itself: see motet/observe/trace.hpp.
struct trace_options {
  /// The file. "%p" in it stands for the number of the process. Empty: what the environment
  /// variable MOTET_TRACE says, else nothing is recorded.
  std::string file;

  /// The number of records kept per thread, the latest ones, of 16 bytes each: a power of two from
  /// 1,024 to 16,777,216.
  std::size_t records = 262'144;
};

/// The defaults suit a server. A program that never calls run() gets the defaults.
struct options {
  /// "io_uring", "libev", "sim", or "auto": the first real backend that works. Empty: what
  /// the environment variable MOTET_BACKEND says, else "auto".
  std::string backend;

  /// Makes a backend of the program's own for each thread with these options, on that thread; then
  /// `backend` and MOTET_BACKEND are ignored. After a fork the child calls it again.
  std::function<std::unique_ptr<motet::backend>(const backend_options&)> make_backend;

  /// Usable bytes of a fiber's stack, from about 28 KiB to 1 GiB; motet uses up to 1 KiB of them.
  std::size_t stack_size = std::size_t{96} * 1024;

  /// While something is pending, the backend is polled after this many switches, or the length of
  /// the run queue if that is larger, and at least this often: [1, 1,000,000] and [1 us, 1 s].
  std::size_t switches_between_polls = 64;
  std::chrono::microseconds time_between_polls{500};

  /// The maximum lateness of a timer, allowed so that the sleeps of many fibers end together and
  /// the thread need not wake for each: [0, 100 ms]. Timers that are few or far apart are at most
  /// 50 us late, as the kernel's own are.
  std::chrono::microseconds timer_slack{500};

  /// How long a thread with nothing to run busy-waits for mail from other threads before it sleeps,
  /// if recent mail arrived that fast, and a processor is free: [0, 10 ms]; 0: never.
  std::chrono::microseconds busy_wait{100};

  /// Sizes of the rings: powers of two in [1, 32768] and [2, 65536].
  unsigned ring_submissions = 256;
  unsigned ring_completions = 4096;

  /// A fiber that has caught its own interruption may wait in the handler for this long before the
  /// interruption is thrown in the handler again: [0, ...].
  std::chrono::milliseconds handler_grace{1'000};

  /// How long a thread whose fibers all wait for one another may sleep before it reports that,
  /// once; 0: never.
  std::chrono::milliseconds deadlock_report{10'000};

  /// Reports a fiber, with its stack, while it occupies its thread for longer than this, in a
  /// computation or a system call: 0 (never), or [5 ms, 1 h]. Reports again when the time has
  /// doubled; at most one report per second. A motet thread calls on_notice with the report,
  /// possibly while this thread calls it, too; the runtime does not end before that. Uses SIGURG. A
  /// forked child is watched from its next runtime on.
  std::chrono::milliseconds stall_report{0};

  /// The maximum number of threads in the process for offloaded calls: [1, 65,536]. 0 keeps the
  /// current limit (256 at first). The runtime that started last with a value determines it.
  std::size_t offload_limit = 0;

  /// The signal at which every motet thread of the process writes its dump to stderr; a busy thread
  /// writes at once where its running fiber is. 0: what the environment variable MOTET_DUMP_SIGNAL
  /// says (QUIT, SIGUSR1, 12), else no signal. A handler that the program had set before is called
  /// as well; a handler that it sets later takes its place.
  int dump_signal = 0;

  /// A process records to one file, with the first runtime's size. A runtime fails to start if its
  /// file cannot be written, or belongs to another process; MOTET_TRACE only gives a notice then.
  trace_options trace;

  /// Called with notices for the user, one line each. Empty: a line on stderr.
  std::function<void(std::string_view)> on_notice;

  /// Called with each failure that no fiber is left to receive, and with each exception raised in a
  /// fiber that reached no further switchpoint. Empty: a line on stderr, and the exit code of the
  /// process becomes 1.
  std::function<void(std::exception_ptr)> on_unhandled;
};

}}  // namespace motet::MOTET_ABI
