// SPDX-License-Identifier: MIT
// Which threads for offloaded calls are at work, and which calls stand in line for them. A thread
// whose call has fibers may wait for calls of these fibers: then the thread is excused, another one
// may work in its place, and the nested calls are served first, so that the calls that wait cannot
// take all threads from those they wait for. A thread whose call was abandoned by its caller is
// excused, too. All is under the lock of platform/offload/blocking_pool.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <motet/base/clock.hpp>
#include <motet/detail/base/blocking_call.hpp>
#include <motet/detail/base/list.hpp>
#include <motet/detail/platform/one_shot_event.hpp>
#include <mutex>
#include <utility>

#include "platform/offload/blocking_pool.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace blocking_pool {
struct worker_pool;
}

struct offload_workers_tag;

/// The part of a thread in the set.
struct offload_worker : tagged_link<offload_workers_tag> {
  call_site site;                                  // the call site of the current call
  clock::time_point begin{};                       // when it began; the epoch: it makes none
  blocking_pool::worker_pool* works_in = nullptr;  // null: the thread is not in the set
  std::size_t waits_for = 0;  // how many calls of its call's fibers it waits for
  bool abandoned = false;     // the caller has abandoned the call that the thread makes
  bool stays = false;         // however long it is idle

  bool excused() const noexcept { return waits_for > 0 || abandoned; }
};

namespace blocking_pool {

struct idle_tag;

/// In the frame of an idle thread of the set.
struct idle_thread : tagged_link<idle_tag> {
  explicit idle_thread(offload_worker& worker) noexcept : owner(&worker) {}

  offload_worker* const owner;
  blocking_call* job = nullptr;
  one_shot_event event;
};

using line_of_calls = list<blocking_call, blocking_calls_tag>;

struct worker_pool {
  explicit constexpr worker_pool(const std::atomic<std::size_t>& maximum) noexcept
      : limit(maximum) {}

  const std::atomic<std::size_t>& limit;
  std::size_t threads = 0;
  std::size_t excused_count = 0;
  std::size_t idle_count = 0;
  list<idle_thread, idle_tag> idle;  // the thread that became idle last is the first
  list<offload_worker, offload_workers_tag> workers;
  clock::time_point last_report{};  // when somebody was last told that calls stand in line
  clock::time_point stuck_since{};  // from when on no call has begun while some stood in line
  line_of_calls nested_line;        // calls that excused threads wait for
  line_of_calls line;

  std::size_t busy() const noexcept { return threads - excused_count - idle_count; }
  bool may_begin() const noexcept { return busy() < limit.load(); }
  bool may_grow() const noexcept { return threads < most_times_in_all * limit.load(); }
  void note_begun() noexcept {
    stuck_since = nested_line.empty() && line.empty() ? clock::time_point()
                                                      : std::chrono::steady_clock::now();
  }

  /// Called in a forked child.
  void abandon() noexcept {
    threads = excused_count = idle_count = 0;
    idle.abandon();
    workers.abandon();
    nested_line.abandon();
    line.abandon();
  }
};

template <typename Change>
void change(offload_worker& worker, Change mutation) noexcept {
  worker.works_in->excused_count -= worker.excused() ? 1 : 0;
  mutation();
  worker.works_in->excused_count += worker.excused() ? 1 : 0;
}

inline void begin_wait(offload_worker& worker, blocking_call& work) noexcept {
  change(worker, [&] { ++worker.waits_for; });
  work.nested_in = &worker;
}

inline void end_wait(offload_worker& worker) noexcept {
  change(worker, [&] { --worker.waits_for; });
}

inline void end_wait_for(blocking_call& work) noexcept {
  if (offload_worker* outer = std::exchange(work.nested_in, nullptr)) end_wait(*outer);
}

inline void note_worker_of(offload_worker& worker, blocking_call& work) noexcept {
  work.worker = &worker;
  worker.site = work.site;
  worker.begin = std::chrono::steady_clock::now();
  if (work.abandoned) change(worker, [&] { worker.abandoned = true; });
}

/// `work` is null if its caller has abandoned it: the call has been destroyed.
inline void note_done(offload_worker& worker, blocking_call* work) noexcept {
  change(worker, [&] { worker.abandoned = false; });
  worker.begin = {};
  if (work == nullptr) return;
  work->worker = nullptr;
  end_wait_for(*work);
}

/// Returns: the next call, or null, for a thread that has just become free and counts as busy.
inline blocking_call* next_for(offload_worker& worker) noexcept {
  worker_pool& target = *worker.works_in;
  blocking_call* next = target.nested_line.pop_front();
  if (next == nullptr && target.busy() <= target.limit.load()) next = target.line.pop_front();
  if (next == nullptr) return nullptr;
  target.note_begun();
  note_worker_of(worker, *next);
  return next;
}

/// Returns: the idle thread that has `work` now, whose event is to be set; or null.
inline idle_thread* hand_over(worker_pool& target, blocking_call& work) noexcept {
  idle_thread* idle = target.idle.pop_front();
  if (idle == nullptr) return nullptr;
  --target.idle_count;
  target.note_begun();
  idle->job = &work;
  note_worker_of(*idle->owner, work);
  return idle;
}

/// The set has no destructor: its threads outlive statics.
struct thread_set {
  std::mutex lock;
  worker_pool calls{most};
  worker_pool own_calls{most_for_own};
  worker_pool names{most_for_names};

  static thread_set& get() {
    static constinit thread_set threads;
    return threads;
  }
  worker_pool& of(const blocking_call& work) noexcept {
    switch (work.pool) {
      case offload_pool::own:
        return own_calls;
      case offload_pool::names:
        return names;
      case offload_pool::calls:
        break;
    }
    return calls;
  }
};

}  // namespace blocking_pool

}}}  // namespace motet::MOTET_ABI::detail
