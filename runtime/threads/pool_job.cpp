// SPDX-License-Identifier: MIT
// See motet/detail/threads/pool_job.hpp: how a job of a pool begins and ends.
#include <motet/detail/threads/pool_job.hpp>

#include "base/made_exception.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"
#include "fibers/fiber_end.hpp"
#include "threads/pool_state.hpp"
#include "unhandled/origin.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool pool_job::begin() noexcept {
  worker_ = self()->load;
  const bool discards = worker_->pool->discarding.load(std::memory_order_relaxed);
  end_ = discards ? job_end::undone : job_end::value;
  return !discards;
}

void pool_job::note_failure(const std::exception_ptr& error) noexcept {
  end_ = job_end::error;
  worker_->failures.fetch_add(1, std::memory_order_relaxed);
  origins::note(error, traveller_of(self()->running()));
}

std::exception_ptr pool_job::failure_of_children() noexcept {
  control_block& fiber = self()->running();
  if (!fiber.has_cold_part) return nullptr;  // it has spun nothing
  std::exception_ptr first = next_failure(fiber);
  while (const std::exception_ptr error = next_failure(fiber)) report_unhandled(*worker_, error);
  if (first == nullptr || end_ == job_end::value) return first;
  report_unhandled(*worker_, first);
  return nullptr;
}

namespace {

/// While the worker does not rest, the last one to finish a job announces that when it begins to.
void count_finished(worker_load& worker) noexcept {
  if (worker.dry.load(std::memory_order_relaxed)) {
    worker.completions.fetch_add(1);
    worker.pool->announce_idle();
  } else {
    worker.completions.store(worker.completions.load(std::memory_order_relaxed) + 1,
                             std::memory_order_release);
  }
}

}  // namespace

void pool_job::count(bool has_slot) noexcept {
  pool_state& pool = *worker_->pool;
  if (end_ == job_end::not_begun) {
    worker_->arrivals.fetch_sub(1);
    pool.announce_idle();
  } else {
    // What the job captured may have gone elsewhere to be destroyed.
    if (self()->load != worker_) come_home(traveller_of(self()->running()));
    count_finished(*worker_);
  }
  if (has_slot) pool.release_slot();
}

std::exception_ptr undone_error() noexcept {
  return made_exception<fiber_cancelled>("a job", "its pool was stopped");
}

void report_unhandled(const worker_load& worker, const std::exception_ptr& error) noexcept {
  report_unhandled(worker.pool->settings, error);
}

}}}  // namespace motet::MOTET_ABI::detail
