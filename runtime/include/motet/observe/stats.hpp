// SPDX-License-Identifier: MIT
// Numbers about every thread with fibers, for monitoring.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/abi.hpp>
#include <motet/runtime/backend.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// A histogram of durations. Bucket i counts durations in [2^i, 2^(i+1)) nanoseconds; bucket 0 also
/// those below 1.
struct span_histogram {
  std::array<std::uint64_t, 64> buckets{};

  /// Returns: the number of spans. Not a switchpoint.
  std::uint64_t count() const noexcept;
  /// Returns: the upper bound of the bucket with the quantile `q`, in [0, 1]; 0 without spans.
  /// Not a switchpoint.
  std::chrono::nanoseconds quantile(double q) const noexcept;
};

/// What one thread counts. The members down to `in_flight` are as of its last look at its inbox, at
/// most 16 switches ago, or its last poll. The others count from the first stats() call in the
/// process; but `spun` and `ended` of a thread that existed by then count from its beginning.
/// Fibers that motet spins for itself, for example for jobs and clean-up, are included.
struct thread_stats {
  pid_t thread = 0;                   // the kernel's id of the thread
  std::uint64_t fibers = 0;           // spun and not dead; the main fiber is not counted
  std::uint64_t runnable = 0;         // in the run queue
  std::uint64_t timers_armed = 0;     // sleeps and time limits
  std::uint64_t stacks_mapped = 0;    // for fibers, of the default size: 132 KiB of addresses each
  std::uint64_t stacks_resident = 0;  // of these, those that occupy memory: a page each at least
  std::uint64_t operations = 0;       // not yet completed by the kernel or a plain thread
  std::array<std::uint64_t, verbs> in_flight{};  // the same by verb, in the order of `verb`

  std::uint64_t spun = 0;
  std::uint64_t ended = 0;
  std::uint64_t switches = 0;         // times that a fiber yielded the thread, even to itself
  std::uint64_t polls = 0;            // of the backend, those that slept included
  std::uint64_t sleeps = 0;           // of the thread
  std::chrono::nanoseconds asleep{};  // by the processor's counter, for the backend sim as well
  std::uint64_t mail = 0;             // messages from other threads
  std::uint64_t timers_fired = 0;
  std::uint64_t timers_late = 0;  // fired over 1 ms plus options.timer_slack after they were due
  /// How long fibers were runnable before they ran; one fiber in 64 is sampled. Few of the fibers
  /// that become runnable on an empty queue are sampled.
  span_histogram queue_delay;
};

/// The fibers that were spun at one place, and have held their thread for longer than
/// options.stall_report.
struct stall_stats {
  call_site site;                      // with line 0: main fibers
  std::uint64_t stalls = 0;            // how often
  std::chrono::nanoseconds longest{};  // as of its latest report
  std::string call;                    // where one was blocked, such as "read(fd 7)"; or empty
};

/// Stack use of the fibers spun at one place. One fiber in 64 is measured, at its end, from the
/// first stats() call in the process on; no main fiber, no fiber that went on as another job's, and
/// none in a build with a sanitizer or with pages of other than 4,096 bytes. A signal handler needs
/// more.
struct stack_stats {
  call_site site;             // of a path of more than 127 characters the end
  std::uint64_t samples = 0;  // fibers
  std::size_t most = 0;       // bytes that the deepest of them used, in pages of 4,096
};

struct process_stats {
  std::vector<thread_stats> threads;  // with a runtime
  thread_stats ended;                 // the sum of those whose runtime has ended; thread is 0
  std::size_t offload_threads = 0;    // for offload(), and for calls that would block
  std::size_t offload_idle = 0;       // of them
  std::size_t offload_queued = 0;     // calls waiting for a thread
  std::size_t offload_limit = 0;      // the most threads for calls of the program: see options
  std::vector<stall_stats> stalls;    // by site
  std::vector<stack_stats> stacks;    // for the first 256 sites
};

/// Reads the threads' counters while they run: numbers of one thread need not be from the same
/// instant. The first call in a process starts the counting, in each thread when it next polls its
/// inbox; until then the counters are 0, and cost no thread more than a branch. Any thread, with
/// fibers or without.
/// Not a switchpoint.
/// Throws: std::bad_alloc.
process_stats stats();

/// Returns: the name of `kind`, for example "recv". Not a switchpoint.
std::string_view name_of(verb kind) noexcept;

}}  // namespace motet::MOTET_ABI
