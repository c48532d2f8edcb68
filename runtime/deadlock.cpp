// SPDX-License-Identifier: MIT
// What happens when no fiber is runnable and nothing that pends can wake one.
#include <dirent.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <motet/errors.hpp>
#include <sstream>
#include <string>

#include "thread_state.hpp"

namespace motet::detail {

namespace {

/// A kernel worker of a ring is listed among the process's threads, but can wake nobody by itself.
bool is_ring_worker(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/comm");
  std::string name;
  std::getline(file, name);
  return name.rfind("iou-", 0) == 0;
}

}  // namespace

/// Source: proc(5), /proc/self/task.
bool thread_state::alone_in_process() const noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir("/proc/self/task"), &::closedir);
  if (threads == nullptr) return false;
  int count = sanitizer::thread ? -1 : 0;  // ThreadSanitizer has a thread of its own
  while (const dirent* entry = ::readdir(threads.get())) {
    if (entry->d_name[0] != '.' && !is_ring_worker(entry->d_name)) ++count;
  }
  return count <= 1;
}

/// Returns: whether the main fiber has been made runnable; otherwise the thread may as well sleep.
bool thread_state::end_idle() noexcept {
  wait_record* wait = main_->wait;
  if (wait != nullptr && wait->ends_when_idle && resume(*wait, wake_reason::idle)) return true;
  // The main fiber ends its children: what a transient one waits for can still wake it.
  if (wait != nullptr && !wait->interruptible && anything_pending()) return false;
  if (deadlock_reported_) return false;
  if (alone_in_process()) {
    if (mail_->filled()) return false;  // by a thread that ended after we had looked
    std::ostringstream report;
    report_deadlock(report);
    if (raise(*main_, std::make_exception_ptr(deadlock(report.str()))) && !queue_.empty()) {
      return true;
    }
    deadlock_reported_ = true;
    notice(report.str());
  } else if (options_.deadlock_report.count() > 0) {
    const clock::time_point present = kernel_->now();
    if (report_at_ == clock::time_point::max()) report_at_ = present + options_.deadlock_report;
    if (present < report_at_) return false;
    report_at_ = clock::time_point::max();
    deadlock_reported_ = true;
    std::ostringstream report;
    report_deadlock(report);
    notice(report.str());
  }
  return false;
}

void thread_state::report_deadlock(std::ostream& out) {
  out << "every fiber of this thread waits and nothing pends that could wake one:\n";
  dump(out);
}

}  // namespace motet::detail
