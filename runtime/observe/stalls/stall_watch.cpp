// SPDX-License-Identifier: MIT
// See observe/stalls/stall_watch.hpp. Objects of the monitored thread may change, or be destroyed,
// at any moment. So they are read through the kernel (platform/frames/peek.hpp), and an observation
// counts only if the thread has made no progress meanwhile. The runtime of the monitored thread
// cannot end during a report.
#include "observe/stalls/stall_watch.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/system_calls.hpp"
#include "core/thread_registry.hpp"
#include "core/thread_state.hpp"
#include "observe/dumps/fiber_frames.hpp"
#include "observe/stalls/blocked_call.hpp"
#include "observe/stalls/fiber_facts.hpp"
#include "observe/stalls/stall_timer.hpp"
#include "observe/stalls/stalled_frames.hpp"
#include "platform/frames/peek.hpp"
#include "platform/signal_mask.hpp"
#include "unhandled/notice.hpp"
#include "unhandled/snapshots.hpp"

#if defined(MOTET_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using clock = stall_timer::clock;

class stall_monitor;

/// Never destroyed: the monitor's thread outlives statics.
struct monitor_state {
  using place = std::pair<std::string, unsigned>;

  std::mutex lock;  // guards:
  bool begun = false;
  std::map<place, stall_stats> by_site;

  std::mutex report_mutex;  // held during a report
  std::atomic<pid_t> monitor_thread{0};
  std::atomic<stall_monitor*> eyes{nullptr};                         // of that thread
  std::atomic<clock::rep> shortest{clock::duration::max().count()};  // of all limits so far
  clock::time_point told_at{};  // the last time, by the monitor's thread
  std::uint64_t untold = 0;     // since then
  monitor_state* of_parent = nullptr;
};

constinit std::atomic<monitor_state*> current{nullptr};
/// The parent's, in a forked child, which refers to that of its own parent: none is lost.
constinit std::atomic<monitor_state*> of_the_parent{nullptr};

monitor_state& state() {
  monitor_state* result = current.load();
  if (result != nullptr) return *result;
  auto* candidate = new monitor_state;
  if (current.compare_exchange_strong(result, candidate)) return *candidate;
  delete candidate;
  return *result;
}

/// A thread that a fiber holds, as it was seen under the thread registry's lock.
struct held_thread {
  const thread_entry* entry;
  pid_t number;
  const thread_state* runtime;
  progress observation;
  clock::duration hold_time;
  bool is_new;
};

void count(const fiber_facts& fiber, const held_thread& thread, const std::string& call) {
  monitor_state& monitor = state();
  const std::lock_guard guard(monitor.lock);
  const std::string file = fiber.site.file == nullptr ? "" : fiber.site.file;
  const auto entry = monitor.by_site.try_emplace({file, fiber.site.line}).first;
  stall_stats& site_stats = entry->second;
  site_stats.site = {entry->first.first.c_str(),
                     entry->first.second};  // the object may be unloaded
  if (thread.is_new) ++site_stats.stalls;
  site_stats.longest = std::max<std::chrono::nanoseconds>(site_stats.longest, thread.hold_time);
  if (!call.empty()) site_stats.call = call;
}

const char* what_it_does(const blocked_call& call) {
  if (call.is == blocked_call::state::in_call) return "is blocked in ";
  return call.is == blocked_call::state::running ? "computes" : "computes, or is blocked";
}

std::string describe(const held_thread& thread, const fiber_facts& fiber, const blocked_call& call,
                     std::span<void* const> frames) {
  const auto length =
      std::chrono::duration_cast<std::chrono::milliseconds>(thread.hold_time).count();
  std::string text = "fiber " + std::to_string(fiber.id);
  if (!fiber.name.empty()) text += " \"" + fiber.name + '"';
  if (!fiber.is_main && fiber.site.file != nullptr) {
    text += ", spun at " + std::string(fiber.site.file) + ':' + std::to_string(fiber.site.line);
    text += ',';
  }
  text += " has held thread " + std::to_string(thread.number) + " for " + std::to_string(length);
  text += " ms: it " + (what_it_does(call) + call.text);
  if (!frames.empty()) text += ", at";
  frame_names names;
  for (const void* frame : frames) text += "\n  " + names.of(frame);
  return text;
}

/// At most one report per second, even if a program stalls again and again.
void tell(const options& settings, std::string text) {
  monitor_state& monitor = state();
  const auto present = clock::now();
  if (monitor.told_at != clock::time_point() &&
      present - monitor.told_at < std::chrono::seconds(1)) {
    ++monitor.untold;
    return;
  }
  monitor.told_at = present;
  if (monitor.untold > 0)
    text += "\n  (" + std::to_string(monitor.untold) + " others were not reported)";
  monitor.untold = 0;
  // What is called now may wake a fiber, or begin a thread, which gets this name.
  ::pthread_setname_np(::pthread_self(), "motet tells");
  notice(settings, text);
  ::pthread_setname_np(::pthread_self(), stall_monitor_name);
}

std::span<void*> frames_of(const held_thread& thread, const fiber_facts& fiber,
                           const blocked_call& call, std::span<void*> buffer) {
  if (call.is == blocked_call::state::in_call) {
    return blocked_frames(call, fiber.runs_on.top, buffer);
  }
  const bool runs = call.is == blocked_call::state::running && state_of(thread.number) == 'R';
  return runs ? computing_frames(thread.number, buffer) : buffer.first(0);
}

void report(const held_thread& thread) {
  std::array<void*, 64> buffer;
  const std::lock_guard guard(state().report_mutex);
  if (!thread.entry->monitored.load()) return;
  const fiber_facts fiber = metadata_of(*thread.observation.fiber);
  const blocked_call call = blocked_call_of(thread.number);
  if (progress_of(*thread.runtime) != thread.observation) return;
  count(fiber, thread, call.text);
  std::span<void*> frames = frames_of(thread, fiber, call, buffer);
  if (progress_of(*thread.runtime) != thread.observation) frames = {};  // perhaps of another fiber
  tell(thread.runtime->settings(), describe(thread, fiber, call, frames));
  save_snapshot(snapshot_cause::stall);
}

/// A child forked during a report has a copy of the report's memory, but not the thread that owns
/// it, which AddressSanitizer would report as a leak.
class unwatched_allocations {
 public:
#if defined(MOTET_ASAN)
  unwatched_allocations() noexcept { ::__lsan_disable(); }
  ~unwatched_allocations() { ::__lsan_enable(); }
#else
  unwatched_allocations() noexcept {}
  ~unwatched_allocations() {}
#endif
  unwatched_allocations(const unwatched_allocations&) = delete;
  unwatched_allocations& operator=(const unwatched_allocations&) = delete;
};

class stall_monitor {
 public:
  [[noreturn]] void go_on_for_ever() {
    for (;;) {
      const clock::duration period = std::max<clock::duration>(
          clock::duration(state().shortest.load()) / 4, std::chrono::milliseconds(1));
      const auto start = clock::now();
      sys::sleep_for(period);
      const auto present = clock::now();
      // The machine has slept, or had no processor for this thread, and then for others neither.
      if (present - start > 2 * period) skip(present - start - period);
      const unwatched_allocations reports;
      try {
        for (const held_thread& thread : look(present)) report(thread);
      } catch (const std::bad_alloc&) {
        // Memory is short: the report is dropped.
      }
    }
  }

 private:
  void skip(clock::duration time) noexcept {
    for (auto& [entry, sight] : timers_) sight.skip(time);
  }

  std::vector<held_thread> look(clock::time_point time) {
    std::vector<held_thread> result;
    for_each_runtime([&](thread_entry& entry) {
      if (!entry.monitored.load()) return;
      const thread_state& thread = *entry.runtime.load();
      const auto observation = progress_of(thread);
      stall_timer& sight = timers_[&entry];
      if (!sight.note(observation, entry.thread, time, thread.settings().stall_report)) return;
      result.push_back(
          {&entry, entry.thread, &thread, *observation, sight.held(time), sight.is_new()});
    });
    return result;
  }

  std::map<const thread_entry*, stall_timer> timers_;
};

void* monitor_main(void*) noexcept {
  ::pthread_setname_np(::pthread_self(), stall_monitor_name);
  state().monitor_thread = ::gettid();
  // Not a static: in a child forked during its initialization, it would never become initialized.
  state().eyes = new stall_monitor;
  state().eyes.load()->go_on_for_ever();
}

void begin(monitor_state& monitor, const options& settings) {
  const int probe = 1;
  int copy = 0;
  if (!peek(&probe, copy)) {
    notice(settings, "options.stall_report has no effect: process_vm_readv(2) is refused here");
  }
  answer_for_frames();
  const signal_mask mask(SIG_BLOCK, all_but_faults());
  pthread_t thread{};
  const int error = ::pthread_create(&thread, nullptr, &monitor_main, nullptr);
  if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_create");
  ::pthread_detach(thread);
  monitor.begun = true;
}

}  // namespace

void monitor_stalls(const options& settings) {
  monitor_state& monitor = state();
  const clock::rep limit = clock::duration(settings.stall_report).count();
  clock::rep shortest = monitor.shortest.load();
  while (limit < shortest && !monitor.shortest.compare_exchange_weak(shortest, limit)) {
  }
  const std::lock_guard guard(monitor.lock);
  if (!monitor.begun) begin(monitor, settings);
}

void stop_monitoring(const thread_state& thread) noexcept {
  std::atomic<bool>& monitored = thread.dumps.monitored();
  if (!monitored.load()) return;
  monitored = false;
  monitor_state& monitor = *current.load();
  if (monitor.monitor_thread == ::gettid()) return;  // a runtime that options.on_notice has made
  const std::lock_guard guard(monitor.report_mutex);
}

void forget_monitor() noexcept {
  monitor_state* parents = current.exchange(nullptr);
  if (parents == nullptr) return;
  parents->of_parent = of_the_parent;
  of_the_parent = parents;
}

std::vector<stall_stats> stalls_so_far() {
  monitor_state& monitor = state();
  const std::lock_guard guard(monitor.lock);
  std::vector<stall_stats> result;
  result.reserve(monitor.by_site.size());
  for (const auto& [place, site_stats] : monitor.by_site) result.push_back(site_stats);
  return result;
}

}}}  // namespace motet::MOTET_ABI::detail
