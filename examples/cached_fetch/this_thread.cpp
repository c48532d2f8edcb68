// SPDX-License-Identifier: MIT
// See this_thread.hpp.
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

namespace cached_fetch {

namespace {

using steady = std::chrono::steady_clock;

/// When, how much the thread had computed, how often it had gone to sleep, and how often the kernel
/// had taken its processor away.
struct moment {
  steady::time_point at;
  std::chrono::nanoseconds computed;
  long sleeps;
  long taken_away;
};

moment present() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  const auto span = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return {steady::now(), span(used.ru_utime) + span(used.ru_stime), used.ru_nvcsw, used.ru_nivcsw};
}

/// The kernel's count of what a thread has computed grows by ticks.
constexpr std::chrono::milliseconds long_enough_to_count{10};

/// How long the thread was occupied: a sleep counts, but that it had no processor is no fiber's
/// fault.
std::chrono::nanoseconds between(const moment& begin, const moment& end) {
  const std::chrono::nanoseconds length = end.at - begin.at;
  const bool slept = begin.sleeps != end.sleeps && begin.taken_away == end.taken_away;
  if (length < long_enough_to_count || slept) return length;
  return end.computed - begin.computed;
}

std::atomic<bool> measuring{true};

struct record {
  std::string name;
  int number = 0;
  std::optional<moment> since{};  // of the stretch that runs
  std::atomic<std::chrono::nanoseconds::rep> longest{0};
};

/// Those of threads that have ended stay.
struct registry {
  std::mutex mutex;
  std::deque<record> all;
};

registry& records() {
  static registry known;
  return known;
}

record& enter_this_thread() {
  registry& known = records();
  const std::lock_guard in(known.mutex);
  record& fresh = known.all.emplace_back();
  fresh.number = ::gettid();
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  fresh.name = fresh.number == ::getpid() ? "main" : name.data();
  return fresh;
}

[[gnu::noinline]] record& this_thread() {
  thread_local record& mine = enter_this_thread();
  return mine;
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
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(each.path() / "comm"), name);
    if (!name.starts_with("iou-")) ++count;
  }
  return count;
}

[[gnu::noinline]] void begin_stretch() {
  if (measuring.load(std::memory_order_relaxed)) this_thread().since = present();
}

[[gnu::noinline]] void end_stretch() {
  record& mine = this_thread();
  if (!mine.since) return;
  const auto length = between(*mine.since, present()).count();
  mine.since.reset();
  if (length > mine.longest.load(std::memory_order_relaxed)) {
    mine.longest.store(length, std::memory_order_relaxed);
  }
}

void measure_no_stretches() {
  measuring = false;
}

void forget_stretches() {
  registry& known = records();
  const std::lock_guard in(known.mutex);
  for (record& each : known.all) each.longest.store(0, std::memory_order_relaxed);
}

std::map<std::string, std::chrono::nanoseconds> longest_stretches() {
  std::map<std::string, std::chrono::nanoseconds> found;
  registry& known = records();
  const std::lock_guard in(known.mutex);
  for (const record& each : known.all) {
    const std::chrono::nanoseconds length(each.longest.load(std::memory_order_relaxed));
    if (length.count() > 0) found[each.name] = std::max(found[each.name], length);
  }
  return found;
}

}  // namespace cached_fetch
