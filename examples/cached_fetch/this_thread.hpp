// SPDX-License-Identifier: MIT
// Which thread is this, and how long have its fibers run at most without a switch?
//
// A fiber that has hopped is on another thread in the middle of a function, and a compiler may have
// kept the address of a thread-local from before: hence all this is behind functions that are not
// inlined.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace cached_fetch {

/// Of the calling thread: "cpu0", "net1", "ui", "main".
const std::string& thread_name();

/// Gives the calling thread that name, also for the kernel.
void name_this_thread(const std::string& name);

/// The calling thread's number in the kernel.
int thread_number();

/// Of this process; those that the kernel has made for its rings are not the program's.
std::size_t count_threads();

/// A stretch of a fiber between two switchpoints begins, or ends, on the calling thread.
void begin_stretch();
void end_stretch();

/// From now on, for who has no time for that.
void measure_no_stretches();

/// Forgets all stretches that have been.
void forget_stretches();

/// The longest stretch of each thread since then.
std::map<std::string, std::chrono::nanoseconds> longest_stretches();

/// While one lives a fiber runs.
class stretch {
 public:
  stretch() { begin_stretch(); }
  stretch(const stretch&) = delete;
  stretch& operator=(const stretch&) = delete;
  ~stretch() { end_stretch(); }
};

/// While one lives a fiber waits, or travels.
class pause {
 public:
  pause() { end_stretch(); }
  pause(const pause&) = delete;
  pause& operator=(const pause&) = delete;
  ~pause() { begin_stretch(); }
};

}  // namespace cached_fetch
