// SPDX-License-Identifier: MIT
// The state that a thread_pool and its workers share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/threads/pool_job.hpp>
#include <motet/runtime/options.hpp>
#include <motet/sync/condition_variable.hpp>
#include <motet/sync/event.hpp>
#include <motet/sync/mutex.hpp>
#include <motet/sync/semaphore.hpp>
#include <motet/threads/thread.hpp>
#include <optional>
#include <vector>

#include "platform/simulated_threads.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct stolen_jobs;

/// How long jobs wait behind a computing job before even a worker with more jobs takes them: about
/// the time to wake a thread.
inline constexpr auto patience = std::chrono::microseconds(100);
/// The same for a worker that has just been woken: it may wait for a processor, or a fiber of an
/// earlier job may compute.
inline constexpr auto patience_with_waking = std::chrono::milliseconds(5);

/// What a worker that rests has seen of another one's queue.
struct seen_queue {
  std::uint64_t over_at = 0;  // departures() when all jobs that it has seen there have left
  clock::time_point since{};  // when it saw them first

  bool is_overdue(bool waking, clock::time_point present) const noexcept {
    return present >= due(waking);
  }
  /// Returns: when to look again. A worker that is waking up may be so soon, and compute then.
  clock::time_point look_at(bool waking, clock::time_point present) const noexcept {
    if (!waking) return due(waking);
    return std::min(due(waking), present + std::max<clock::duration>(patience, present - since));
  }

 private:
  clock::time_point due(bool waking) const noexcept {
    return since + (waking ? clock::duration(patience_with_waking) : patience);
  }
};

/// See pool_state::roles.
inline constexpr std::uint64_t one_searching = std::uint64_t{1} << 32;
inline bool any_searching(std::uint64_t roles) noexcept {
  return roles >= one_searching;
}
inline bool any_resting(std::uint64_t roles) noexcept {
  return roles % one_searching != 0;
}

/// Returns: the worker's number of unfinished jobs; -1 for a moment while some are being moved.
std::int64_t load_of(const worker_load& worker) noexcept;

struct pool_state : std::enable_shared_from_this<pool_state> {
  explicit pool_state(std::size_t workers)
      : count(workers),
        loads(std::make_unique<worker_load[]>(workers)),
        queues(std::make_unique<seen_queue[]>(workers * workers)) {
    threads.reserve(workers);
    for (std::size_t i = 0; i < workers; ++i) loads[i].pool = this;
  }

  /// Waits for a slot if the pool has a limit.
  /// Throws: executor_stopped; a pending interruption.
  void enter();
  /// Throws: executor_stopped if the pool has stopped.
  void check_running() const;
  void release_slot() noexcept {
    if (slots) slots->release();
  }
  /// Gives a job to a worker, as detail::give(), but waits for no slot.
  void give(job_slot&& item, pool_job& job, local_list&& inherited_locals, std::size_t worker);
  void push(job_slot&& item, bool movable, worker_load& worker);
  /// Returns: null if the calling thread keeps the pool's state alive anyway.
  std::shared_ptr<pool_state> owner_during_push();

  /// Returns: the number of the worker that should get the next job; its load includes the job
  ///          already.
  std::size_t choose() noexcept;
  /// Returns: whether the calling thread is one of the workers.
  bool on_worker() const noexcept;
  /// Returns: the number of the calling worker if it keeps the jobs that it submits; or
  ///          `least_loaded`.
  std::size_t keeper() noexcept;
  void remember(std::size_t number) noexcept;
  /// Returns: whether the workers had nothing to do at some time during this call.
  bool idle() const noexcept;
  /// Waits until they are idle.
  /// Throws: a pending interruption.
  void await_idle();
  /// Tells those in await_idle() that the pool may be idle.
  void announce_idle() noexcept;

  /// Called by a worker that has no job to start, before it waits awake for one. Until the end of
  /// its search no worker that rests is woken for a job that others may steal; then the last
  /// searcher wakes those that are needed.
  /// Returns: false if no worker rests; then there is no end to announce.
  bool begin_search() noexcept;
  void end_search(const worker_load& worker) noexcept;
  /// Called by a worker that goes to rest, and then when it looks for a job.
  void begin_rest(worker_load& worker) noexcept;
  void end_rest(worker_load& worker) noexcept {
    roles.fetch_sub(1);
    worker.dry.store(false, std::memory_order_relaxed);
  }
  /// Returns: whether another worker has jobs that it has not begun, or somebody waits until the
  ///          pool is idle, which a worker announces when it goes to rest.
  bool is_needed_elsewhere(const worker_load& worker) const noexcept;
  /// Steals jobs of another worker for `thief`, which rests: up to half the difference between that
  /// worker's jobs and its own; at least one job of a queue that the thief has seen for a while,
  /// and no more than that of a worker that is waking up.
  /// Returns: if no job was stolen, when the thief should look again; time_point::max() if there is
  ///          nothing to look for.
  clock::time_point steal_into(worker_load& thief, stolen_jobs& loot,
                               clock::time_point present) noexcept;
  /// Unless a worker searches, has one that rests look for the jobs that `busy` has not begun.
  void rouse_another(const worker_load& busy) noexcept;

  const std::uint32_t made_in = this_process();
  /// Zero in a simulation, in which real time must decide nothing.
  const std::uint64_t microsecond =
      simulated_threads::present() != nullptr ? 0 : ticks_in(std::chrono::microseconds(1));
  const std::size_t count;
  const std::unique_ptr<worker_load[]> loads;
  const std::unique_ptr<seen_queue[]> queues;  // a row for each worker, which alone uses it
  std::vector<thread> threads;
  const options settings = options_here();  // of the workers
  std::optional<semaphore> slots;
  atomic<bool> stopping{false};
  atomic<bool> discarding{false};
  event stopped;
  /// Changed by the threads that submit jobs, so not beside what workers read.
  alignas(64) atomic<std::size_t> last_chosen{0};
  atomic<std::size_t> strands{0};
  /// Counts the workers that rest, and in multiples of `one_searching` those that search.
  alignas(64) atomic<std::uint64_t> roles{0};
  atomic<unsigned> awaiting_idle{0};
  mutex idle_mutex;
  condition_variable idle_condition;
};

}}}  // namespace motet::MOTET_ABI::detail
