// SPDX-License-Identifier: MIT
// See thread_pool.hpp: how a pool begins and ends, and how a job is given and finished.
#include <pthread.h>

#include <algorithm>
#include <motet/cancellation/cancel.hpp>
#include <motet/threads/thread_pool.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/made_exception.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"
#include "fibers/fiber_end.hpp"
#include "platform/cores.hpp"
#include "threads/pool_state.hpp"
#include "threads/thread_link.hpp"
#include "unhandled/origin.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

worker_load& load_here() noexcept {
  return *self()->load;
}

bool discards(const worker_load& worker) noexcept {
  return worker.pool->discarding.load(std::memory_order_relaxed);
}

bool may_have_spun() noexcept {
  return self()->running().has_cold_part;
}

std::exception_ptr failure_of_children(const worker_load& worker) noexcept {
  thread_state& home = *self();
  control_block& fiber = home.running();
  std::exception_ptr first = next_failure(fiber);
  while (const std::exception_ptr error = next_failure(fiber)) report_unhandled(worker, error);
  return first;
}

std::exception_ptr undone_error() noexcept {
  return made_exception<fiber_cancelled>("a job", "its pool was stopped");
}

void note_failure(worker_load& worker, const std::exception_ptr& error) noexcept {
  worker.failures.fetch_add(1, std::memory_order_relaxed);
  origins::note(error, traveller_of(self()->running()));
}

/// While the worker does not rest, the last one to finish a job announces that when it begins to.
void count_finished(worker_load& worker, bool has_slot) noexcept {
  pool_state& pool = *worker.pool;
  // What the job captured may have gone elsewhere to be destroyed.
  if (self()->load != &worker) come_home(traveller_of(self()->running()));
  if (worker.dry.load(std::memory_order_relaxed)) {
    worker.completions.fetch_add(1);
    pool.announce_idle();
  } else {
    worker.completions.store(worker.completions.load(std::memory_order_relaxed) + 1,
                             std::memory_order_release);
  }
  if (has_slot && pool.slots) pool.slots->release();
}

void count_discarded(worker_load& worker, bool has_slot) noexcept {
  pool_state& pool = *worker.pool;
  worker.arrivals.fetch_sub(1);
  pool.announce_idle();
  if (has_slot && pool.slots) pool.slots->release();
}

void report_unhandled(const worker_load& worker, const std::exception_ptr& error) noexcept {
  report_unhandled(worker.pool->settings, error);
}

namespace {

/// The name that the kernel shows has 15 characters, so a long name is cut, but not the number.
void name_this_thread(const std::string& name, std::size_t number) {
  const std::string digits = " " + std::to_string(number);
  const std::string label = name.substr(0, 15 - std::min<std::size_t>(digits.size(), 15)) + digits;
  ::pthread_setname_np(::pthread_self(), label.c_str());
}

/// A worker's main fiber: no interruption ends it before the pool stops.
void work(pool_state& pool, const std::string& name, std::size_t number) {
  name_this_thread(name, number);
  thread_state& home = *self();
  home.pool = &pool;
  home.load = &pool.loads[number];
  home.jobs.inbox->join_pool(*home.load);
  shield([&] {
    pool.stopped.wait();
    pool.await_idle();
  });
}

}  // namespace

}  // namespace detail

std::size_t processors() noexcept {
  return detail::usable_cores();
}

thread_pool::thread_pool(std::size_t workers, std::string_view name) {
  start(workers, name);
}

thread_pool::thread_pool(std::size_t workers, std::string_view name, std::size_t limit) {
  if (limit == 0) throw std::invalid_argument("thread_pool: the limit must be at least 1");
  start(workers, name);
  state_->slots.emplace(static_cast<std::ptrdiff_t>(limit));
}

void thread_pool::start(std::size_t workers, std::string_view name) {
  if (workers == 0)
    throw std::invalid_argument("thread_pool: the number of workers must be at least 1");
  state_ = std::make_shared<detail::pool_state>(workers);
  try {
    for (std::size_t i = 0; i < workers; ++i) {
      auto function = [pool = state_, label = std::string(name), i] {
        detail::work(*pool, label, i);
      };
      // The threads serve all fibers, and inherit no locals from the fiber that makes the pool.
      state_->threads.push_back(
          thread(state_->settings, {}, detail::job_slot::holding(std::move(function), {})));
      state_->loads[i].inbox.store(&state_->threads.back().link()->jobs, std::memory_order_release);
    }
  } catch (...) {
    state_->stopped.set();
    state_->threads.clear();
    throw;
  }
}

/// All threads end before the first thread object is destroyed: until then their jobs may use the
/// other workers.
thread_pool::~thread_pool() {
  if (!in_this_process()) return;
  state_->stopping.store(true);
  state_->stopped.set();
  // On one of the pool's threads there is no wait: all of them end by themselves, and share
  // ownership of the state.
  if (on_own_thread()) return;
  for (const thread& worker : state_->threads) worker.await_over();
  state_->threads.clear();
}

void thread_pool::stop(stop_mode mode) {
  refuse_to_wait_here();
  state_->stopping.store(true);
  if (mode == stop_mode::discard) state_->discarding.store(true);
  state_->stopped.set();
  for (const thread& worker : state_->threads) worker.await_main();
}

void thread_pool::drain() {
  refuse_to_wait_here();
  state_->await_idle();
}

std::size_t thread_pool::workers() const noexcept {
  return state_->count;
}

std::int64_t thread_pool::load_of(std::size_t worker) const noexcept {
  return detail::load_of(state_->loads[worker]);
}

thread& thread_pool::worker(std::size_t number) const noexcept {
  return state_->threads[number];
}

bool thread_pool::on_own_thread() const {
  return std::any_of(state_->threads.begin(), state_->threads.end(),
                     [](const thread& worker) { return detail::runs_here(*worker.link()); });
}

bool thread_pool::in_this_process() const noexcept {
  return detail::in_this_process(*state_->threads.front().link());
}

void thread_pool::refuse_to_wait_here() const {
  if (!in_this_process()) throw executor_stopped();
  if (on_own_thread()) {
    throw std::logic_error("thread_pool: a job cannot wait for its own pool");
  }
}

/// Throws: executor_stopped; a pending interruption for a fiber that waits for a slot.
void thread_pool::enter() const {
  if (!in_this_process() || state_->stopping.load()) throw executor_stopped();
  if (!state_->slots) return;
  state_->slots->acquire();
  check_entered(true);
}

void thread_pool::check_entered(bool has_slot) const {
  if (!state_->stopping.load()) return;
  if (has_slot && state_->slots) state_->slots->release();
  throw executor_stopped();
}

detail::worker_load& thread_pool::choose() const noexcept {
  return state_->loads[state_->choose()];
}

detail::worker_load& thread_pool::choose(std::size_t worker) const noexcept {
  detail::worker_load& load = state_->loads[worker];
  load.arrivals.fetch_add(1);
  return load;
}

std::size_t thread_pool::next_for_strand() const noexcept {
  return state_->strands.fetch_add(1, std::memory_order_relaxed) % state_->count;
}

void thread_pool::hand_over(const detail::worker_load& load, detail::job_slot&& job) const {
  const auto number = static_cast<std::size_t>(&load - state_->loads.get());
  const bool movable = job.movable();
  const std::shared_ptr<detail::pool_state> state = state_;  // the job may own the pool
  const auto result = state->threads[number].link()->jobs.push(std::move(job));
  if (result == detail::job_inbox::pushed::refused) throw executor_stopped();
  if (movable && result == detail::job_inbox::pushed::taken) state->rouse_another(load);
}

std::vector<thread_pool::worker_stats> thread_pool::stats() const {
  std::vector<worker_stats> stats;
  stats.reserve(state_->count);
  for (std::size_t i = 0; i < state_->count; ++i) {
    const detail::worker_load& load = state_->loads[i];
    const std::uint64_t count = load.completions.load();
    const std::int64_t jobs = detail::load_of(load);
    stats.push_back({static_cast<std::size_t>(std::max<std::int64_t>(jobs, 0)), count,
                     load.failures.load(std::memory_order_relaxed)});
  }
  if (state_->idle()) {
    // A job that was destroyed before it began was counted where it was given, wherever it was
    // then.
    for (worker_stats& entry : stats) entry.pending = 0;
  }
  return stats;
}

}}  // namespace motet::MOTET_ABI
