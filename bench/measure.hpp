// SPDX-License-Identifier: MIT
// What the benchmarks of fibers share: a program measures the one thing that it is told to and
// prints one number; figures.py runs the programs in turn.
#pragma once

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>

namespace bench {

/// Nanoseconds of `clock`: CLOCK_MONOTONIC, or CLOCK_PROCESS_CPUTIME_ID.
inline double now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec at{};
  ::clock_gettime(clock, &at);
  return static_cast<double>(at.tv_sec) * 1e9 + static_cast<double>(at.tv_nsec);
}

/// Returns: nanoseconds that each of `iterations` takes.
template <typename Work>
double cost(std::size_t iterations, Work work) {
  const double from = now();
  work();
  return (now() - from) / static_cast<double>(iterations);
}

/// Returns: resident bytes of this process. Source: proc(5); VmRSS would be an estimate.
inline double resident() {
  std::ifstream lines("/proc/self/smaps_rollup");
  double found = 0;
  for (std::string word; lines >> word;) {
    if (word == "Rss:") lines >> found;
  }
  return found * 1024;
}

/// How long the sleeper `i` of many sleeps, in ms: 1 to 1,000.
inline int sleep_of(std::size_t i) {
  return static_cast<int>(i * 2654435761U % 1000) + 1;
}

/// Laps of fibers that take turns, before those that count: a stack's first touches are not a
/// switch, and under a hypervisor not only the first one is slow.
constexpr std::size_t warm_laps = 4;

struct subject {
  const char* name;
  double (*measure)(std::size_t size, std::size_t iterations);
};

/// The program NAME SIZE ITERATIONS.
inline int main_of(std::span<const subject> subjects, int count, char** words) {
  if (count == 4) {
    for (const subject& each : subjects) {
      if (std::strcmp(each.name, words[1]) != 0) continue;
      const double found =
          each.measure(std::strtoul(words[2], nullptr, 10), std::strtoul(words[3], nullptr, 10));
      std::printf("%.3f\n", found);
      return 0;
    }
  }
  std::fprintf(stderr, "usage: %s WHAT SIZE ITERATIONS\n", words[0]);
  return 2;
}

}  // namespace bench
