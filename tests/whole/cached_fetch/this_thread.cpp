// SPDX-License-Identifier: MIT
#include "this_thread.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

namespace fetch_test {

namespace {

using steady = std::chrono::steady_clock;

/// A time, with the thread's counts until then.
struct moment {
  steady::time_point time;
  std::chrono::nanoseconds compute_time;
  long sleeps;
  long preemptions;
};

moment present() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto span = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return {steady::now(), span(usage.ru_utime) + span(usage.ru_stime), usage.ru_nvcsw,
          usage.ru_nivcsw};
}

/// The kernel counts the time of computation in ticks.
constexpr std::chrono::milliseconds tick{10};

/// Returns: how long the thread was occupied. A sleep counts; a wait for a processor does not.
std::chrono::nanoseconds between(const moment& begin, const moment& end) {
  const std::chrono::nanoseconds length = end.time - begin.time;
  const bool is_sleep = begin.sleeps != end.sleeps && begin.preemptions == end.preemptions;
  if (length < tick || is_sleep) return length;
  return end.compute_time - begin.compute_time;
}

struct record {
  std::string name;
  int number = 0;
  std::optional<moment> begin{};  // of the present stretch
  std::atomic<std::chrono::nanoseconds::rep> longest{0};
};

/// Keeps the records of threads that have ended.
struct registry {
  std::mutex mutex;
  std::deque<record> entries;
};

registry& records() {
  static registry threads;
  return threads;
}

record& enter_this_thread() {
  registry& threads = records();
  const std::lock_guard guard(threads.mutex);
  record& entry = threads.entries.emplace_back();
  entry.number = ::gettid();
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  entry.name = entry.number == ::getpid() ? "main" : name.data();
  return entry;
}

[[gnu::noinline]] record& this_thread() {
  thread_local record& entry = enter_this_thread();
  return entry;
}

}  // namespace

[[gnu::noinline]] const std::string& thread_name() {
  return this_thread().name;
}

[[gnu::noinline]] int thread_number() {
  return this_thread().number;
}

void name_this_thread(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.c_str());
  this_thread().name = name;
}

std::size_t count_threads() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (!name.starts_with("iou-")) ++count;
  }
  return count;
}

[[gnu::noinline]] void begin_stretch() {
  this_thread().begin = present();
}

[[gnu::noinline]] void end_stretch() {
  record& entry = this_thread();
  if (!entry.begin) return;
  const auto length = between(*entry.begin, present()).count();
  entry.begin.reset();
  if (length > entry.longest.load(std::memory_order_relaxed)) {
    entry.longest.store(length, std::memory_order_relaxed);
  }
}

void forget_stretches() {
  registry& threads = records();
  const std::lock_guard guard(threads.mutex);
  for (record& entry : threads.entries) entry.longest.store(0, std::memory_order_relaxed);
}

std::map<std::string, std::chrono::nanoseconds> longest_stretches() {
  std::map<std::string, std::chrono::nanoseconds> result;
  registry& threads = records();
  const std::lock_guard guard(threads.mutex);
  for (const record& entry : threads.entries) {
    const std::chrono::nanoseconds length(entry.longest.load(std::memory_order_relaxed));
    if (length.count() > 0) result[entry.name] = std::max(result[entry.name], length);
  }
  return result;
}

}  // namespace fetch_test
