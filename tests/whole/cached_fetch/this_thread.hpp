// SPDX-License-Identifier: MIT
// The name of the calling thread, and how long its fibers run without a switch. A compiler may keep
// the address of a thread-local while a fiber goes to another thread, so these functions are not
// inlined.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace fetch_test {

/// Of the calling thread: "cpu0", "net1", "ui", "main".
const std::string& thread_name();

/// Gives the calling thread that name, also for the kernel.
void name_this_thread(const std::string& name);

/// The calling thread's number in the kernel.
int thread_number();

/// Returns: the threads of this process, without those of the kernel's rings.
std::size_t count_threads();

/// A stretch of a fiber between two switchpoints begins, or ends, on the calling thread.
void begin_stretch();
void end_stretch();

/// Forgets all stretches so far.
void forget_stretches();

/// Returns: the longest stretch of each thread since then.
std::map<std::string, std::chrono::nanoseconds> longest_stretches();

/// While it lives, the fiber runs in code of the test.
class stretch {
 public:
  stretch() { begin_stretch(); }
  stretch(const stretch&) = delete;
  stretch& operator=(const stretch&) = delete;
  ~stretch() { end_stretch(); }
};

/// While it lives, the fiber waits, travels, or runs in code of the example.
class pause {
 public:
  pause() { end_stretch(); }
  pause(const pause&) = delete;
  pause& operator=(const pause&) = delete;
  ~pause() { begin_stretch(); }
};

}  // namespace fetch_test
