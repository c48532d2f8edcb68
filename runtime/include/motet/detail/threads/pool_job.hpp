// SPDX-License-Identifier: MIT
// A job of a thread_pool, and the counts of the worker that has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/core/job_slot.hpp>
#include <motet/detail/core/locals.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class job_inbox;
struct pool_state;

/// A worker's load is the number of jobs it has been given, or has taken from other workers, less
/// the number it has finished. A pool in which the sums of `arrivals` and `completions` are equal
/// has nothing to do.
struct worker_load {
  alignas(64) atomic<std::uint64_t> arrivals{0};
  atomic<std::int64_t> steal_balance{0};  // jobs stolen from others, minus jobs stolen by others
  // A copy of `completions` and its time, updated by the threads that submit jobs.
  atomic<std::uint64_t> seen_finished{0};
  atomic<std::uint64_t> seen_at{0};
  alignas(64) atomic<std::uint64_t> completions{0};  // the worker alone writes it
  atomic<std::uint64_t> failures{0};
  /// The worker has no more to start, and waits for jobs, or has ended.
  atomic<bool> dry{false};
  // Read for every job, and in a line of their own, which no write to a count invalidates.
  alignas(64) atomic<job_inbox*> inbox{nullptr};  // null: the pool is still being made
  pool_state* pool = nullptr;
};

/// How a job has ended.
enum class job_end : std::uint8_t { not_begun, undone, value, error };

/// Returns: the exception for the future of a job that was not done.
std::exception_ptr undone_error() noexcept;
void report_unhandled(const worker_load& worker, const std::exception_ptr& error) noexcept;

/// A base of the jobs of a pool, one class for each call that makes them. A job settles its outcome
/// in its destructor, on its own fiber, whose children have ended.
class pool_job {
 public:
  /// The worker's load counts this job already.
  void give_to(worker_load& worker) noexcept { worker_ = &worker; }

 protected:
  pool_job() noexcept = default;
  pool_job(pool_job&& other) noexcept : worker_(taken(other.worker_)) {}
  pool_job& operator=(pool_job&&) = delete;
  ~pool_job() = default;

  /// Calls job.run(), and job.fail() with what it throws.
  template <typename Job>
  void call(Job& job) noexcept {
    if (!begin()) return;
    try {
      job.run();
    } catch (...) {
      fail(job, std::current_exception());
    }
  }

  /// The load falls before the result is published: a thread that has seen the result finds this
  /// worker idle. A job that no worker was given has nothing to settle.
  template <typename Job>
  void settle(Job& job) noexcept {
    if (worker_ == nullptr) return;
    if (end_ <= job_end::undone) {
      job.mark_undone();
    } else if (std::exception_ptr error = failure_of_children()) {
      fail(job, std::move(error));
    }
    const bool has_slot = job.has_slot();
    job.drop();
    count(has_slot);
    race_point();
    job.publish();
  }

 private:
  template <typename Job>
  void fail(Job& job, std::exception_ptr error) noexcept {
    note_failure(error);
    job.fail(*worker_, std::move(error));
  }

  /// Returns: whether the worker that runs the job wants it done.
  bool begin() noexcept;
  void note_failure(const std::exception_ptr& error) noexcept;
  /// Called when all children of the job's fiber have ended.
  /// Returns: the exception with which the job fails because of them; or null. Further exceptions
  ///          go to on_unhandled.
  std::exception_ptr failure_of_children() noexcept;
  /// Counts the job as finished, or as discarded by a thread that destroys it unbegun.
  void count(bool has_slot) noexcept;

  worker_load* worker_ = nullptr;
  job_end end_ = job_end::not_begun;
};

/// The job of a post(). No future waits for it: a failure goes to on_unhandled.
template <typename F>
class posted_job : public pool_job {
 public:
  template <typename G>
  explicit posted_job(std::in_place_t, G&& function) {
    if constexpr (moves_safely) {
      function_.emplace(std::forward<G>(function));
    } else {
      function_ = std::make_unique<F>(std::forward<G>(function));
    }
  }
  posted_job(posted_job&&) noexcept = default;
  ~posted_job() { settle(*this); }

  void operator()() noexcept { call(*this); }

 private:
  friend pool_job;
  void run() { (*function_)(); }
  void fail(const worker_load& worker, const std::exception_ptr& error) noexcept {
    report_unhandled(worker, error);
  }
  void mark_undone() noexcept {}
  static constexpr bool has_slot() noexcept { return true; }
  void drop() noexcept { function_.reset(); }
  void publish() noexcept {}

  static constexpr bool moves_safely = std::is_nothrow_move_constructible_v<F>;

  std::conditional_t<moves_safely, std::optional<F>, std::unique_ptr<F>> function_;
};

/// In place of a worker's number; other workers may steal the job. `any_worker`: the calling one if
/// none is idle, and otherwise the one with the fewest jobs.
inline constexpr std::size_t any_worker = static_cast<std::size_t>(-1);
inline constexpr std::size_t least_loaded = static_cast<std::size_t>(-2);

/// Gives `job`, the function in `item`, to a worker, once the pool has a slot for it.
/// Throws: executor_stopped; std::bad_alloc; a pending interruption while it waits for the slot.
void give(const std::shared_ptr<pool_state>& pool, job_slot&& item, pool_job& job,
          local_list&& inherited_locals, std::size_t worker);

}}}  // namespace motet::MOTET_ABI::detail
