// SPDX-License-Identifier: MIT
// A job of a thread_pool, and the counts of the worker that has it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/core/job_slot.hpp>
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
  alignas(64) std::atomic<std::uint64_t> arrivals{0};
  std::atomic<std::int64_t> steal_balance{
      0};  // jobs stolen from others, minus jobs stolen by others
  // A copy of `completions` and its time, updated by the threads that submit jobs.
  std::atomic<std::uint64_t> seen_finished{0};
  std::atomic<std::uint64_t> seen_at{0};
  alignas(64) std::atomic<std::uint64_t> completions{0};  // the worker alone writes it
  std::atomic<std::uint64_t> failures{0};
  /// The worker has no more to start, and waits for jobs, or has ended.
  std::atomic<bool> dry{false};
  std::atomic<job_inbox*> inbox{nullptr};  // null: the pool is still being made
  pool_state* pool = nullptr;
};

/// How a job has ended.
enum class job_end : std::uint8_t { not_begun, undone, value, error };

/// Called by a job.
/// Returns: the load of the worker that runs it.
worker_load& load_here() noexcept;
bool discards(const worker_load& worker) noexcept;
/// Whether the running fiber may have had children.
bool may_have_spun() noexcept;
/// Called when all children of the running fiber have ended.
/// Returns: the exception of a child that no fiber has received; further ones go to on_unhandled.
std::exception_ptr failure_of_children(const worker_load& worker) noexcept;
/// Returns: the exception for the future of a job that was not done.
std::exception_ptr undone_error() noexcept;
/// Called on the fiber of the job that has failed.
void note_failure(worker_load& worker, const std::exception_ptr& error) noexcept;
void count_finished(worker_load& worker, bool has_slot) noexcept;
/// A job that no worker has begun is destroyed. Any thread.
void count_discarded(worker_load& worker, bool has_slot) noexcept;
void report_unhandled(const worker_load& worker, const std::exception_ptr& error) noexcept;

/// A job. Its outcome is settled in its destructor, on its own fiber, whose children have ended.
template <typename Work>
class pool_task {
  static_assert(std::is_nothrow_move_constructible_v<Work>);

 public:
  /// The worker's load counts this job already.
  pool_task(worker_load& worker, Work&& work) noexcept : worker_(&worker), work_(std::move(work)) {}
  pool_task(pool_task&& other) noexcept
      : worker_(taken(other.worker_)), work_(std::move(other.work_)) {}
  pool_task& operator=(pool_task&&) = delete;
  ~pool_task() {
    if (worker_ != nullptr) end();
  }

  void operator()() noexcept {
    worker_ = &load_here();
    end_ = job_end::undone;
    if (discards(*worker_)) return;
    end_ = job_end::value;
    try {
      work_.run();
    } catch (...) {
      fail(std::current_exception());
    }
  }

 private:
  void fail(std::exception_ptr error) noexcept {
    end_ = job_end::error;
    note_failure(*worker_, error);
    work_.fail(*worker_, std::move(error));
  }

  /// The load falls before the result is published: a thread that has seen the result finds this
  /// worker idle.
  void end() noexcept {
    if (end_ <= job_end::undone) {
      work_.mark_undone();
    } else if (may_have_spun()) {
      look_at_children();
    }
    const bool has_slot = work_.has_slot();
    work_.drop();
    if (end_ == job_end::not_begun) {
      count_discarded(*worker_, has_slot);
    } else {
      count_finished(*worker_, has_slot);
    }
    race_point();
    work_.publish();
  }

  void look_at_children() noexcept {
    std::exception_ptr error = failure_of_children(*worker_);
    if (error == nullptr) return;
    if (end_ == job_end::value) {
      fail(std::move(error));
    } else {
      report_unhandled(*worker_, error);
    }
  }

  worker_load* worker_;
  job_end end_ = job_end::not_begun;
  Work work_;
};

/// The function of a post(). No future waits for it: a failure goes to on_unhandled.
template <typename F>
class posted_work {
 public:
  template <typename G>
  explicit posted_work(std::in_place_t, G&& function) {
    if constexpr (moves_safely) {
      function_.emplace(std::forward<G>(function));
    } else {
      function_ = std::make_unique<F>(std::forward<G>(function));
    }
  }

  void run() { (*function_)(); }
  void fail(const worker_load& worker, const std::exception_ptr& error) noexcept {
    report_unhandled(worker, error);
  }
  void mark_undone() noexcept {}
  static constexpr bool has_slot() noexcept { return true; }
  void drop() noexcept { function_.reset(); }
  void publish() noexcept {}

 private:
  static constexpr bool moves_safely = std::is_nothrow_move_constructible_v<F>;

  std::conditional_t<moves_safely, std::optional<F>, std::unique_ptr<F>> function_;
};

}}}  // namespace motet::MOTET_ABI::detail
