// SPDX-License-Identifier: MIT
// See threads/job_inbox.hpp. No wake is lost: under the lock either the owner's fiber finds the
// job, or the thread that leaves the job finds that the fiber waits.
#include "threads/job_inbox.hpp"

#include <sched.h>

#include <algorithm>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/core/timer.hpp>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>

#include "base/flag_guard.hpp"
#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"
#include "platform/ticks.hpp"
#include "threads/pool_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Chunks of memory that each of the two queues keeps, as they swap them.
constexpr std::size_t kept_chunks = 32;

/// A producer that is far ahead of the owner yields the processor now and then, because the owner
/// may be waiting for it; and because jobs that wait so long fall out of the cache.
constexpr std::size_t far_ahead = 4'096;
constexpr std::size_t between_yields = 256;

/// Nothing is allocated under the lock.
/// Throws: std::bad_alloc, with the lock released.
void reserve_chunk(item_queue<job_slot>& queue, std::unique_lock<shared_policy>& lock) {
  while (queue.needs_chunk()) {
    lock.unlock();
    auto chunk = item_queue<job_slot>::make_chunk();
    lock.lock();
    queue.add(std::move(chunk));
  }
}

void move_out(item_queue<job_slot>& source, stolen_jobs& target, std::size_t limit) noexcept {
  limit = std::min({limit, target.jobs.size(), (source.size() + 1) / 2});
  while (target.count < limit && source.front().movable()) source.pop(target.jobs[target.count++]);
}

/// Under a lock: other threads only read the number.
void add(atomic<std::uint64_t>& number, std::uint64_t increment,
         std::memory_order order = std::memory_order_relaxed) noexcept {
  number.store(number.load(std::memory_order_relaxed) + increment, order);
}

}  // namespace

job_inbox::job_inbox() noexcept {
  arrivals_.retain(kept_chunks);
  queue_.retain(kept_chunks);
  wake_up_.inbox = this;
  wake_up_.handle_post = [](post& item, thread_state& home) noexcept {
    job_inbox& inbox = *static_cast<wake_up&>(item).inbox;
    inbox.wake_is_under_way_ = false;
    if (inbox.waiter_ != nullptr) home.resume(*inbox.waiter_, wake_reason::handed);
  };
}

job_inbox::pushed job_inbox::push(job_slot&& item, const pool_state* pool) {
  if (made_in_ != this_process()) return pushed::refused;
  std::unique_lock lock(sharing_);
  reserve_chunk(arrivals_, lock);
  if (owner_ == owner_state::closed) return pushed::refused;
  arrivals_.push(std::move(item));
  arrivals_.prefetch_place();
  add(came_, 1, std::memory_order_seq_cst);  // before anybody looks for other workers
  const bool stays =
      owner_ == owner_state::waits && pool != nullptr && any_searching(pool->roles.load());
  const bool wakes = !stays && stop_wait();
  const std::size_t backlog = arrivals_.size();
  lock.unlock();
  race_point();
  const bool was_idle = wakes && home_->push_to_idle(wake_up_);
  if (backlog >= far_ahead && backlog % between_yields == 0) ::sched_yield();
  if (stays) return pushed::left_to_searcher;
  return was_idle ? pushed::woke : pushed::accepted;
}

bool job_inbox::end_wait(owner_state next) noexcept {
  {
    const std::lock_guard lock(sharing_);
    if (!stop_wait(next)) return false;
  }
  race_point();
  return home_->push_to_idle(wake_up_);
}

void job_inbox::give_away(stolen_jobs& target, std::size_t limit) noexcept {
  const std::lock_guard lock(taking_);
  move_out(queue_, target, limit);
  if (target.count == 0) {
    const std::lock_guard sharing_lock(sharing_);
    move_out(arrivals_, target, limit);
  }
  add(departures_, target.count);
}

/// Called with the lock `taking_`.
job_inbox::first job_inbox::first_in_queue() noexcept {
  if (queue_.size() == 0) return {};
  const job_slot& oldest = queue_.front();
  return {oldest.holds_job() ? first::kind::job : first::kind::function, oldest.site};
}

/// Fetches all posted jobs, and looks at the first.
/// Returns: whether there is a job, or the inbox is closed. If not, push() and rouse() will wake
///          the owner, except one that has not announced its rest yet.
bool job_inbox::fetch() noexcept {
  const std::lock_guard taking_lock(taking_);
  found_ = first_in_queue();
  if (found_.type != first::kind::none) return true;
  const std::lock_guard sharing_lock(sharing_);
  if (arrivals_.size() > 0) {
    queue_.swap(arrivals_);
    last_batch_ = {queue_.size(), came_.load(std::memory_order_relaxed), ticks()};
  }
  if (owner_ == owner_state::closed) return true;
  looks_elsewhere_ = looks_elsewhere_ || owner_ == owner_state::roused;
  found_ = first_in_queue();
  const bool has_job = found_.type != first::kind::none;
  const bool waits = !has_job && rests_ && !wake_is_under_way_;
  owner_ = waits ? owner_state::waits : owner_state::busy;
  return has_job;
}

namespace {

/// Whether the running fiber may wait awake, because there is nothing else to run.
bool may_wait_awake(const thread_state& home) noexcept {
  return !home.any_runnable() && !home.mail().filled();
}

}  // namespace

/// Looks for a job for some microseconds before it rests, if jobs have lately come soon. Nothing is
/// posted to the mailbox meanwhile, and no lock taken.
/// Returns: whether a job has come.
bool job_inbox::look_awake(thread_state& home) noexcept {
  if (rests_ || !home.busy_wait.worthwhile() || !may_wait_awake(home)) return false;
  pool_state* const pool = load_ != nullptr ? load_->pool : nullptr;
  const bool announced = pool != nullptr && pool->begin_search();
  {
    const flag_guard look(home.looks_aside);
    home.busy_wait.look([&] { return queue() > 0 || home.mail().filled(); },
                        [&] {
                          return home.look_for_events() ||
                                 (pool != nullptr && pool->is_needed_elsewhere(*load_));
                        });
  }
  if (announced) pool->end_search(*load_);
  return queue() > 0;
}

/// Called when this thread has no job, and has announced that.
/// Returns: whether jobs were stolen; false also if memory is short.
bool job_inbox::take_from_others(thread_state& home) noexcept {
  static_assert(decltype(queue_)::chunk_size >= std::tuple_size_v<decltype(stolen_jobs::jobs)>);
  try {
    std::unique_lock lock(taking_);
    reserve_chunk(queue_, lock);
  } catch (const std::bad_alloc&) {
    look_at_ = home.time.after(patience_with_waking);
    return false;
  }
  stolen_jobs jobs;
  look_at_ = load_->pool->steal_into(*load_, jobs, home.time.after({}));
  // Stolen jobs would wait behind the first of them.
  looks_elsewhere_ = jobs.count > 0 || look_at_ != clock::time_point::max();
  const std::lock_guard lock(taking_);
  for (std::size_t i = 0; i < jobs.count; ++i) queue_.push(std::move(*jobs.jobs[i]));
  add(stolen_, jobs.count, std::memory_order_seq_cst);
  return jobs.count > 0;
}

/// Takes fetch()'s word back that a wake is needed.
void job_inbox::wait_no_more() noexcept {
  const std::lock_guard lock(sharing_);
  if (!stop_wait()) wake_is_under_way_ = true;
}

/// Under the lock `sharing_`. Returns: whether the owner waited.
bool job_inbox::stop_wait(owner_state next) noexcept {
  if (owner_ != owner_state::waits) return false;
  owner_ = next;
  return true;
}

/// Returns: whether the owner has announced only now that it rests.
bool job_inbox::begin_rest() noexcept {
  if (std::exchange(rests_, true)) return false;
  if (load_ != nullptr) load_->pool->begin_rest(*load_);
  return true;
}

void job_inbox::end_rest() noexcept {
  if (std::exchange(rests_, false) && load_ != nullptr) load_->pool->end_rest(*load_);
}

/// Waits for jobs, its own or, at `look_at_`, those of others.
wake_reason job_inbox::wait_for_jobs(thread_state& home) noexcept {
  struct look_again : timer {
    explicit look_again(job_inbox& target) noexcept : inbox(target) {}
    job_inbox& inbox;
    wait_record wait{"jobs"};
  } alarm(*this);
  if (look_at_ != clock::time_point::max()) {
    alarm.fiber = &home.running();
    alarm.due = look_at_;
    alarm.fire = [](timer& due) noexcept {
      auto& look = static_cast<look_again&>(due);
      // Before the mail is read: the wake-up may have been posted already.
      if (due.fiber->home->resume(look.wait, wake_reason::time)) look.inbox.wait_no_more();
    };
    home.time.arm(alarm);
  }
  waiter_ = &alarm.wait;
  const wake_reason reason = home.park(alarm.wait);
  waiter_ = nullptr;
  home.time.disarm(alarm);
  return reason;
}

/// A thread that looks for each job of a stream takes the inbox's cache lines from the one that
/// submits them, and both wait for memory most of the time.
void job_inbox::let_jobs_gather(const thread_state& home) const noexcept {
  const std::uint64_t gone =
      departures_.load(std::memory_order_relaxed) - stolen_.load(std::memory_order_relaxed);
  if (last_batch_.size < 2 || gone != last_batch_.end) return;
  if (!home.busy_wait.may_stay() || !may_wait_awake(home)) return;
  home.busy_wait.pause_since(last_batch_.time, [&] { return home.mail().filled(); });
}

/// Between fetch() and the wait no other fiber runs, so the wake finds who waits.
job_inbox::first job_inbox::await(thread_state& home) noexcept {
  let_jobs_gather(home);
  while (!fetch()) {
    if (look_awake(home) || begin_rest()) continue;
    if (load_ != nullptr && take_from_others(home)) {
      wait_no_more();
      continue;
    }
    if (wait_for_jobs(home) == wake_reason::interrupted) return {};
  }
  end_rest();
  if (std::exchange(looks_elsewhere_, false) && load_ != nullptr)
    load_->pool->rouse_another(*load_);  // which looks instead of this one
  return owner_ == owner_state::closed ? first() : found_;
}

job_inbox::first job_inbox::front() noexcept {
  const std::lock_guard lock(taking_);
  return first_in_queue();
}

bool job_inbox::pop(first::kind kind, std::optional<job_slot>& job) noexcept {
  decltype(queue_)::chunk_pointer chunk;  // freed when the lock is free again
  bool uncovers = false;
  {
    const std::lock_guard lock(taking_);
    if (queue_.size() == 0 || queue_.front().holds_job() != (kind == first::kind::job))
      return false;
    chunk = queue_.pop(job);
    add(departures_, 1);
    uncovers = queue_.size() > 0 && !job->movable();
  }
  if (uncovers && load_ != nullptr) load_->pool->rouse_another(*load_);
  return true;
}

/// Moves the remaining jobs out before it destroys them: destruction may take a while, and no fiber
/// may start one meanwhile.
void job_inbox::close(thread_state& home) noexcept {
  item_queue<job_slot> second_batch;  // destroyed in reverse
  item_queue<job_slot> first_batch;
  {
    const std::lock_guard taking_lock(taking_);
    const std::lock_guard sharing_lock(sharing_);
    owner_ = owner_state::closed;
    first_batch.swap(queue_);
    second_batch.swap(arrivals_);
  }
  // The jobs that the worker has begun may still end, and the pool may go after that.
  worker_load* const load = std::exchange(load_, nullptr);
  if (load != nullptr && !std::exchange(rests_, true)) load->pool->begin_rest(*load);
  if (waiter_ != nullptr) home.resume(*waiter_, wake_reason::handed);
}

}}}  // namespace motet::MOTET_ABI::detail
