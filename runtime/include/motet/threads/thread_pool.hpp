// SPDX-License-Identifier: MIT
// Threads that share work: each job goes to the worker with the fewest unfinished jobs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/detail/core/inherited_locals.hpp>
#include <motet/detail/threads/pool_job.hpp>
#include <motet/sync/future.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

class strand;
class thread;
class thread_pool;
namespace detail {
class arrival;
struct journey;
bool runs_here(const strand& target) noexcept;
bool runs_here(const thread_pool& target);
bool reserve_slot(const strand& target, const journey& traveller);
bool reserve_slot(const thread_pool& target, const journey& traveller);
void give(const strand& target, const arrival& fiber);
void give(const thread_pool& target, const arrival& fiber);
struct loop_body;
void call_in_blocks(thread_pool& pool, std::size_t count, loop_body body, call_site site);
std::size_t workers_of(const thread_pool& pool) noexcept;

/// The function of a submit(), and the state of its future, in one allocation.
template <typename F, typename Result>
struct submitted : future_state<Result> {
  template <typename G>
    requires std::constructible_from<F, G>
  explicit submitted(G&& work) : function(std::in_place, std::forward<G>(work)) {}
  std::optional<F> function;
};

template <typename F, typename Result>
class submitted_job : public pool_job {
 public:
  explicit submitted_job(std::shared_ptr<submitted<F, Result>> state) noexcept
      : state_(std::move(state)) {}
  submitted_job(submitted_job&&) noexcept = default;
  ~submitted_job() { settle(*this); }

  void operator()() noexcept { call(*this); }

 private:
  friend pool_job;
  void run() {
    if constexpr (std::is_void_v<Result>) {
      (*state_->function)();
      state_->value.emplace();
    } else {
      state_->value.emplace((*state_->function)());
    }
  }
  void fail(const worker_load&, std::exception_ptr error) noexcept {
    state_->error = as_seen_by_others(std::move(error), "a job");
  }
  void mark_undone() noexcept { state_->error = undone_error(); }
  static constexpr bool has_slot() noexcept { return true; }
  void drop() noexcept { state_->function.reset(); }
  void publish() noexcept { state_->publish(); }

  std::shared_ptr<submitted<F, Result>> state_;
};

}  // namespace detail
namespace net {
class tcp_listener;
}

/// Returns: how many processors this thread may use: those of its affinity, or fewer if the
///          process's control groups allow it less; at least 1.
/// Not a switchpoint.
/// Source: sched_getaffinity(2); Linux, Documentation/admin-guide/cgroup-v2.rst, cpu.max.
std::size_t processors() noexcept;

/// The workers are motet threads, and each job is a fiber. A job that waits delays no other job;
/// one that computes delays only the jobs that its worker has started. An idle worker steals
/// unstarted jobs from another: up to an even share, and more if they have waited for some 100 us.
/// A job goes to an idle worker if there is one; otherwise one that a worker submits goes into that
/// worker's own queue. No job waits beside an idle worker for longer than it takes to wake a
/// thread. Any thread may use a pool.
class thread_pool {
 public:
  /// Starts `workers` threads, called `name` and a number, with the options of this thread.
  /// Switchpoint: waits until the threads have begun; nothing interrupts it. On a thread that has
  /// no runtime it blocks.
  /// Throws: std::invalid_argument for 0 workers; as the constructor of `thread`.
  explicit thread_pool(std::size_t workers = processors(), std::string_view name = "pool");
  /// The same, but with at most `limit` unfinished jobs:
  /// a call that submits one more waits.
  /// Switchpoint, as above.
  /// Throws: std::invalid_argument for a limit of 0.
  thread_pool(std::size_t workers, std::string_view name, std::size_t limit);
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  /// As stop(), but nothing interrupts it. On one of the pool's own threads it does not wait.
  /// Switchpoint.
  ~thread_pool();

  /// Runs `f`, moved, as a job on one of the workers.
  /// Returns: a future of the result of `f`, ready once the job's fiber and its children have
  ///          ended. The future may be dropped.
  /// Switchpoint if the pool has a limit; else not a switchpoint.
  /// Throws: executor_stopped after stop(); std::bad_alloc; a pending interruption.
  template <typename F>
  auto submit(F&& f, call_site site = call_site::here()) {
    using body = std::decay_t<F>;
    using result = std::invoke_result_t<body&>;
    detail::local_list inherited_locals = detail::inherited_here();
    auto job = std::make_shared<detail::submitted<body, result>>(std::forward<F>(f));
    future<result> outcome(job);
    give(detail::submitted_job<body, result>(std::move(job)), std::move(inherited_locals), site);
    return outcome;
  }

  /// The same without a future: on_unhandled receives what `f` throws.
  /// Switchpoint if the pool has a limit; else not a switchpoint.
  /// Throws: as submit().
  template <typename F>
  void post(F&& f, call_site site = call_site::here()) {
    detail::local_list inherited_locals = detail::inherited_here();
    give(detail::posted_job<std::decay_t<F>>(std::in_place, std::forward<F>(f)),
         std::move(inherited_locals), site);
  }

  /// Waits until the pool is idle: all functions have been called and destroyed. A result without a
  /// future may be destroyed a little later. The pool continues to accept jobs.
  /// Switchpoint; on a thread that has no runtime it blocks the thread.
  /// Throws: std::logic_error on one of the pool's own threads; a pending interruption.
  void drain();

  enum class stop_mode : std::uint8_t {
    drain,    // the jobs submitted so far are finished first
    discard,  // jobs that have not begun end as cancelled
  };
  /// Accepts no more jobs, and waits until the pool's threads have ended. May be called again.
  /// Switchpoint; on a thread that has no runtime it blocks the thread.
  /// Throws: std::logic_error on one of the pool's own threads; a pending interruption: the threads
  ///         then end on their own, and another call of stop() waits for them.
  void stop(stop_mode mode = stop_mode::drain);

  struct worker_stats {
    std::size_t pending;     // jobs submitted and not finished
    std::uint64_t executed;  // jobs finished, including failed ones
    std::uint64_t failed;
  };
  /// Returns: the numbers of each worker's jobs.
  /// Not a switchpoint.
  /// Throws: std::bad_alloc.
  std::vector<worker_stats> stats() const;

 private:
  friend class net::tcp_listener;
  friend class strand;
  friend bool detail::runs_here(const thread_pool& target);
  friend bool detail::runs_here(const strand& target) noexcept;
  friend bool detail::reserve_slot(const thread_pool& target, const detail::journey& traveller);
  friend bool detail::reserve_slot(const strand& target, const detail::journey& traveller);
  friend void detail::give(const thread_pool& target, const detail::arrival& fiber);
  friend void detail::give(const strand& target, const detail::arrival& fiber);
  friend void detail::call_in_blocks(thread_pool& pool, std::size_t count, detail::loop_body body,
                                     call_site site);
  friend std::size_t detail::workers_of(const thread_pool& pool) noexcept;

  std::size_t workers() const noexcept;
  thread& worker(std::size_t number) const noexcept;
  std::int64_t load_of(std::size_t worker) const noexcept;
  void start(std::size_t workers, std::string_view name);
  /// Throws: executor_stopped if the pool has stopped.
  void check_running() const;
  bool enter_unless_inside(const detail::journey& traveller) const;
  template <typename Job>
  void give(Job&& job, detail::local_list&& inherited_locals, call_site site,
            std::size_t worker = detail::any_worker) const {
    auto item =
        detail::job_slot::holding(std::forward<Job>(job), site, worker == detail::any_worker);
    detail::give(state_, std::move(item), item.template function<Job>(),
                 std::move(inherited_locals), worker);
  }
  bool on_own_thread() const;
  bool in_this_process() const noexcept;
  void refuse_to_wait_here() const;

  std::shared_ptr<detail::pool_state> state_;
};

}}  // namespace motet::MOTET_ABI
