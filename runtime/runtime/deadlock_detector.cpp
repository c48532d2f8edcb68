// SPDX-License-Identifier: MIT
// See core/deadlock_detector.hpp.
#include "core/deadlock_detector.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/detail/base/timespan.hpp>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/saturating_time.hpp"
#include "base/saved_errno.hpp"
#include "base/system_calls.hpp"
#include "cancellation/interrupt.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/simulated_threads.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A kernel worker of a ring is listed among the process's threads, but can wake nobody by itself;
/// nor can a thread of motet's that is just ending, or watches others.
bool wakes_nobody(const char* thread) noexcept {
  std::array<char, 300> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%s/comm", thread);
  const int file = sys::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 16> name{};
  const ssize_t size = sys::read(file, name.data(), name.size());
  sys::close(file);
  if (size <= 0) return false;
  const std::string_view text(name.data(), static_cast<std::size_t>(size));
  return text.starts_with("iou-") || text.starts_with(blocking_pool::name_of_ended) ||
         text.starts_with(stall_monitor_name);
}

/// The process's threads, as its directory lists them.
struct thread_counts {
  std::size_t threads = 0;
  std::size_t workers = 0;  // that wake nobody
  bool whole = false;
};

/// A listing that meets an exiting thread can miss the threads behind it, so its count must match
/// the directory's link count.
/// Source: proc(5), /proc/self/task; Linux, fs/proc/base.c: its link count is 2 + threads.
thread_counts count_threads() noexcept {
  constexpr const char* path = "/proc/self/task";
  thread_counts counts;
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir(path), &::closedir);
  if (threads == nullptr) return counts;
  while (const dirent* entry = ::readdir(threads.get())) {
    if (entry->d_name[0] == '.') continue;
    ++counts.threads;
    if (wakes_nobody(entry->d_name)) ++counts.workers;
  }
  struct stat status{};
  counts.whole = ::stat(path, &status) == 0 && status.st_nlink == 2 + counts.threads;
  return counts;
}

constexpr int most_counts = 5;

/// Intervals between searches for other threads that could still act. Workers become idle without a
/// notification, so with workers the search repeats, ever more seldom.
constexpr auto shortest_between_looks = std::chrono::milliseconds(100);
constexpr auto longest_between_looks = std::chrono::milliseconds(1'600);

/// The threads of the process that could wake a fiber of this one.
enum class other_threads : std::uint8_t { none, workers, others };

other_threads other_threads_in_process() noexcept {
  const blocking_pool::standstill standstill;
  const std::ptrdiff_t idle_before = idle_workers.load();
  thread_counts counts = count_threads();
  for (int i = 1; i < most_counts && !counts.whole; ++i) counts = count_threads();
  if (counts.threads == 0) return other_threads::others;
  constexpr std::size_t main_and_sanitizer =
      sanitizer::thread ? 2 : 1;  // ThreadSanitizer has a thread of its own
  const std::size_t accounted_threads = main_and_sanitizer + counts.workers + standstill.idle();
  const std::size_t strangers = counts.threads - std::min(counts.threads, accounted_threads);
  // A worker that has become idle since may have begun a thread that was not counted.
  const std::ptrdiff_t idle_count = std::min(idle_before, idle_workers.load());
  if (std::cmp_less_equal(strangers, idle_count)) return other_threads::none;
  return strangers <= worker_threads.load() ? other_threads::workers : other_threads::others;
}

std::string deadlock_report(thread_state& thread) {
  std::ostringstream output;
  output << "every fiber of this thread waits and nothing pends that could wake one";
  if (hooks.dump_fibers != nullptr) {
    output << ":\n";
    hooks.dump_fibers(thread, output);
  }
  return output.str();
}

/// In a poll: what is told may wait in options.on_notice.
void notice_later(thread_state& thread, std::string line) {
  const options& settings = thread.settings();
  thread.cleaner.spin([&settings, text = std::move(line)] { notice(settings, text); },
                      "motet's notices");
}

}  // namespace

bool deadlock_detector::end_idle() noexcept {
  const saved_errno errno_guard(thread_.error_number());
  wait_record* wait = thread_.main_fiber().wait;
  if (wait != nullptr && wait->kind == wait_kind::idle_token &&
      thread_.resume(*wait, wake_reason::idle)) {
    return true;
  }
  // The main fiber ends its children: what a transient one waits for can still wake it.
  if (wait != nullptr && !wait->interruptible && thread_.anything_pending()) return false;
  if (reported_ || thread_.jobs.may_come()) return false;
  if (simulated_threads::present() != nullptr) return false;  // which knows when nothing can run
  const clock::time_point present = thread_.kernel().now();
  stuck_ = true;
  if (present < look_for_others_at_ && present < report_at_) {
    idle_until_ = std::min(look_for_others_at_, report_at_);
    return false;
  }
  idle_until_ = clock::time_point::max();
  try {
    return end_stuck(present);
  } catch (const std::bad_alloc&) {  // the next search will report it
    idle_until_ = look_for_others_at_ = present + shortest_between_looks;
    return false;
  }
}

/// All fibers wait for one another, unless there are other threads.
bool deadlock_detector::end_stuck(clock::time_point present) {
  const other_threads threads = other_threads_in_process();
  if (threads == other_threads::none) {
    if (thread_.mail().filled()) return false;  // by a thread that ended after we had looked
    return raise_deadlock();
  }
  thread_.kernel().keep_pace(true);  // virtual time must not run away from the other threads
  between_looks_ = std::clamp<clock::duration>(2 * between_looks_, shortest_between_looks,
                                               longest_between_looks);
  look_for_others_at_ = present + between_looks_;
  if (threads == other_threads::workers) {  // one may be about to answer, or to become idle
    idle_until_ = look_for_others_at_;
    return false;
  }
  const timespan limit(thread_.settings().deadlock_report);
  if (limit.length.count() == 0) return false;
  if (report_at_ == clock::time_point::max()) report_at_ = deadline_after(present, limit.length);
  if (present < report_at_) {
    idle_until_ = report_at_;
    return false;
  }
  return report_deadlock();
}

bool deadlock_detector::raise_deadlock() {
  std::string report = deadlock_report(thread_);
  const bool raised = raise_here(thread_.main_fiber(), std::make_exception_ptr(deadlock(report)));
  if (raised && thread_.any_runnable()) return true;
  notice_later(thread_, std::move(report));
  return reported_ = true;
}

bool deadlock_detector::report_deadlock() {
  notice_later(thread_, deadlock_report(thread_));
  return reported_ = true;
}

void deadlock_detector::look_whether_stuck() noexcept {
  if (!thread_.lasting_pending() && !thread_.any_runnable()) return;
  stuck_ = false;
  thread_.kernel().keep_pace(false);
  report_at_ = idle_until_ = clock::time_point::max();
  between_looks_ = {};
}

}}}  // namespace motet::MOTET_ABI::detail
