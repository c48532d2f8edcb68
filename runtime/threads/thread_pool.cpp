// SPDX-License-Identifier: MIT
// See thread_pool.hpp: how a pool begins and ends.
#include <pthread.h>

#include <algorithm>
#include <motet/cancellation/cancel.hpp>
#include <motet/threads/portal.hpp>
#include <motet/threads/thread_pool.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/thread_state.hpp"
#include "platform/cores.hpp"
#include "platform/simulated_threads.hpp"
#include "threads/pool_state.hpp"
#include "threads/thread_link.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

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

}}  // namespace detail

std::size_t processors() noexcept {
  const auto* const simulation = detail::simulated_threads::present();
  return simulation != nullptr ? simulation->processors() : detail::usable_cores();
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

void thread_pool::check_running() const {
  state_->check_running();
}

strand::strand(thread_pool& pool) noexcept
    : pool_(&pool),
      worker_(pool.state_->strands.fetch_add(1, std::memory_order_relaxed) % pool.state_->count) {}

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
