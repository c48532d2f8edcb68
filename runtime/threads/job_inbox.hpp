// SPDX-License-Identifier: MIT
// The jobs that other threads post to one thread, the owner. The owner fetches all of them at once,
// and is woken only if it waits. If it is a worker of a pool, other workers may steal jobs that it
// has not started.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/item_queue.hpp>
#include <motet/detail/base/post.hpp>
#include <motet/detail/core/job_slot.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/sync/sharing.hpp>
#include <motet/detail/threads/pool_job.hpp>
#include <optional>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class mailbox;

/// The jobs that a worker steals at a time.
struct stolen_jobs {
  std::array<std::optional<job_slot>, 16> jobs;
  std::size_t count = 0;
};

class job_inbox {
 public:
  job_inbox() noexcept;
  job_inbox(const job_inbox&) = delete;
  job_inbox& operator=(const job_inbox&) = delete;

  /// Called before another thread can reach the inbox.
  void open(mailbox& home) noexcept { home_ = &home; }
  enum class pushed : std::uint8_t { refused, accepted, woke, left_to_searcher };
  /// Any thread. Wakes the owner if it waits, unless a worker of `pool` searches: that one will.
  /// The caller keeps an `item` that is refused because the inbox is closed, or the owner is a
  /// thread of the parent process.
  /// Returns: `woke` if the owner's thread had nothing to run.
  /// Throws: std::bad_alloc; the caller keeps `item`.
  pushed push(job_slot&& item, const pool_state* pool = nullptr);
  /// Wakes the owner, if it waits: for its own jobs, or to look for those of others as well. Any
  /// thread.
  /// Returns: whether its thread had nothing to run.
  bool wake() noexcept { return end_wait(owner_state::busy); }
  bool rouse() noexcept { return end_wait(owner_state::roused); }
  /// Moves up to `limit` of the jobs into `target`: the oldest half of a batch that arrived
  /// together, and none behind a job that must stay. Any thread.
  void give_away(stolen_jobs& target, std::size_t limit) noexcept;

  /// Returns: how many jobs the owner has not begun; an estimate while jobs come and go. Any
  /// thread.
  std::int64_t queue() const noexcept {
    return static_cast<std::int64_t>(came_.load() + stolen_.load() - departures_.load());
  }
  /// Returns: how many jobs the owner has begun or lost to thieves. Any thread.
  std::uint64_t departures() const noexcept { return departures_.load(std::memory_order_relaxed); }

  // The rest is for the owner alone.
  /// The owner is the worker with that load.
  void join_pool(worker_load& load) noexcept { load_ = &load; }
  /// The oldest job; another worker may steal it at any moment.
  struct first {
    enum class kind : std::uint8_t { none, function, job } type = kind::none;
    call_site site = {};
  };
  /// Waits until there is a job.
  /// Returns: none if the inbox is closed, or the fiber was interrupted.
  first await(thread_state& home) noexcept;
  first front() noexcept;
  /// Pops the oldest job, but only if it is of that kind.
  bool pop(first::kind kind, std::optional<job_slot>& job) noexcept;
  /// Accepts no more jobs, and destroys the remaining ones unstarted.
  void close(thread_state& home) noexcept;

  /// A caller, of job_starter.cpp, is about to call the next function.
  bool somebody_calls = false;

 private:
  /// `waits`: the next job wakes the owner. `roused`: busy, and woken since its last fetch to look
  /// for jobs of others.
  enum class owner_state : std::uint8_t { busy, roused, waits, closed };
  struct wake_up : post {
    job_inbox* inbox = nullptr;
  };

  bool fetch() noexcept;
  first first_in_queue() noexcept;
  void let_jobs_gather(const thread_state& home) const noexcept;
  bool look_awake(thread_state& home) noexcept;
  bool take_from_others(thread_state& home) noexcept;
  wake_reason wait_for_jobs(thread_state& home) noexcept;
  void wait_no_more() noexcept;
  bool stop_wait(owner_state next = owner_state::busy) noexcept;
  bool end_wait(owner_state next) noexcept;
  bool begin_rest() noexcept;
  void end_rest() noexcept;

  const std::uint32_t made_in_ = this_process();
  shared_policy sharing_;  // guards:
  item_queue<job_slot> arrivals_;
  atomic<std::uint64_t> came_{0};
  owner_state owner_ = owner_state::busy;

  alignas(64) shared_policy taking_;  // guards, and is taken before `sharing_`:
  item_queue<job_slot> queue_;
  atomic<std::uint64_t> departures_{0};
  atomic<std::uint64_t> stolen_{0};  // by the owner

  // Of the owner:
  worker_load* load_ = nullptr;  // null: not a worker, or closed
  bool rests_ = false;
  /// The jobs that were fetched together at last: how many, the value of `came_` then, and when.
  struct batch {
    std::size_t size = 0;
    std::uint64_t end = 0;
    std::uint64_t time = 0;  // in ticks
  } last_batch_;
  first found_;                   // by the last fetch
  bool looks_elsewhere_ = false;  // others rely on it to look for jobs of other workers
  clock::time_point look_at_ = clock::time_point::max();  // when it looks for them again
  mailbox* home_ = nullptr;
  wait_record* waiter_ = nullptr;
  wake_up wake_up_;
  bool wake_is_under_way_ = false;  // though nobody waits any more
};

/// Throws: executor_stopped if the inbox takes no more jobs; std::bad_alloc.
void deposit(job_inbox& inbox, job_slot&& item);

}}}  // namespace motet::MOTET_ABI::detail
