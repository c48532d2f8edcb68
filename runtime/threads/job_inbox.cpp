// SPDX-License-Identifier: MIT
// See threads/job_inbox.hpp. No wake is lost: under the lock either the owner's fiber finds the
// job, or the thread that leaves the job finds that the fiber waits.
#include "threads/job_inbox.hpp"

#include <sched.h>

#include <algorithm>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/core/timer.hpp>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>

#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"
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
void make_room(item_queue<job_slot>& in, std::unique_lock<shared_policy>& held) {
  while (in.lacks_room()) {
    held.unlock();
    auto more = item_queue<job_slot>::make_room();
    held.lock();
    in.add(std::move(more));
  }
}

void move_out(item_queue<job_slot>& from, stolen_jobs& into, std::size_t most) noexcept {
  most = std::min({most, into.jobs.size(), (from.size() + 1) / 2});
  while (into.count < most && from.front().movable()) from.pop(into.jobs[into.count++]);
}

/// Under a lock: other threads only read the number.
void add(std::atomic<std::uint64_t>& number, std::uint64_t more) noexcept {
  number.store(number.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

job_inbox::job_inbox() noexcept {
  arrived_.keep(kept_chunks);
  taken_.keep(kept_chunks);
  wake_up_.inbox = this;
  wake_up_.handle_post = [](post& item, thread_state& home) noexcept {
    job_inbox& inbox = *static_cast<wake_up&>(item).inbox;
    inbox.wake_is_under_way_ = false;
    if (inbox.waiting_ != nullptr) home.resume(*inbox.waiting_, wake_reason::handed);
  };
}

job_inbox::pushed job_inbox::push(job_slot&& item) {
  if (made_in_ != this_process()) return pushed::refused;
  std::unique_lock in(sharing_);
  make_room(arrived_, in);
  if (closed_) return pushed::refused;
  arrived_.push(std::move(item));
  add(came_, 1);
  const bool wakes = std::exchange(awaited_, false);
  const std::size_t waiting = arrived_.size();
  in.unlock();
  race_point();
  const bool was_idle = wakes && home_->push_to_idle(wake_up_);
  if (waiting >= far_ahead && waiting % between_yields == 0) ::sched_yield();
  return was_idle ? pushed::woke : pushed::taken;
}

bool job_inbox::rouse() noexcept {
  {
    const std::lock_guard in(sharing_);
    if (!std::exchange(awaited_, false)) return false;
  }
  race_point();
  return home_->push_to_idle(wake_up_);
}

void job_inbox::give_away(stolen_jobs& into, std::size_t most) noexcept {
  const std::lock_guard in(taking_);
  move_out(taken_, into, most);
  if (into.count == 0) {
    const std::lock_guard also(sharing_);
    move_out(arrived_, into, most);
  }
  add(gone_, into.count);
}

/// Fetches all posted jobs.
/// Returns: whether there is a job, or the inbox is closed. If not, push() and rouse() will wake
///          the owner, except a worker that has not announced its rest yet.
bool job_inbox::fetch() noexcept {
  const std::lock_guard mine(taking_);
  if (taken_.size() > 0) return true;
  const std::lock_guard in(sharing_);
  if (arrived_.size() > 0) taken_.swap(arrived_);
  const bool found = taken_.size() > 0 || closed_;
  awaited_ = !found && (load_ == nullptr || rests_) && !wake_is_under_way_;
  return found;
}

/// Called when this thread has no job, and has announced that.
/// Returns: whether jobs were stolen; false also if memory is short.
bool job_inbox::take_from_others(thread_state& home) noexcept {
  static_assert(decltype(taken_)::chunk_size >= std::tuple_size_v<decltype(stolen_jobs::jobs)>);
  try {
    std::unique_lock mine(taking_);
    make_room(taken_, mine);
  } catch (const std::bad_alloc&) {
    return false;
  }
  stolen_jobs found;
  observed_ = load_->pool->steal_into(*load_, found, observed_, home.time.after({}));
  const std::lock_guard mine(taking_);
  for (std::size_t i = 0; i < found.count; ++i) taken_.push(std::move(*found.jobs[i]));
  gone_.store(gone_.load(std::memory_order_relaxed) - found.count, std::memory_order_relaxed);
  return found.count > 0;
}

/// Takes fetch()'s word back that a wake is needed.
void job_inbox::wait_no_more() noexcept {
  const std::lock_guard in(sharing_);
  if (!std::exchange(awaited_, false)) wake_is_under_way_ = true;
}

/// Returns: whether the owner is a worker, and has said only now that it rests.
bool job_inbox::begin_rest() noexcept {
  if (load_ == nullptr || std::exchange(rests_, true)) return false;
  load_->pool->begin_rest(*load_);
  return true;
}

void job_inbox::end_rest() noexcept {
  if (load_ != nullptr && std::exchange(rests_, false)) load_->pool->end_rest(*load_);
}

/// Waits for jobs; while another worker's queue is observed, for at most its patience.
wake_reason job_inbox::wait_for_jobs(thread_state& home) noexcept {
  struct look_again : timer {
    explicit look_again(job_inbox& which) noexcept : inbox(which) {}
    job_inbox& inbox;
    wait_record wait{"jobs"};
  } alarm(*this);
  if (observed_.owner != nullptr) {
    alarm.fiber = &home.running();
    alarm.due = observed_.overdue_at;
    alarm.fire = [](timer& due) noexcept {
      auto& over = static_cast<look_again&>(due);
      // Before the mail is read: the wake-up may have been posted already.
      if (due.fiber->home->resume(over.wait, wake_reason::time)) over.inbox.wait_no_more();
    };
    home.time.arm(alarm);
  }
  waiting_ = &alarm.wait;
  const wake_reason woken = home.park(alarm.wait);
  waiting_ = nullptr;
  home.time.disarm(alarm);
  return woken;
}

/// Between fetch() and the wait no other fiber runs, so the wake finds who waits.
bool job_inbox::await(thread_state& home) noexcept {
  while (!fetch()) {
    if (begin_rest()) continue;
    if (load_ != nullptr && take_from_others(home)) {
      wait_no_more();
      load_->pool->rouse_another(*load_);  // or the stolen jobs would wait behind the first of them
      continue;
    }
    if (wait_for_jobs(home) == wake_reason::interrupted) return false;
  }
  observed_ = {};
  end_rest();
  return !closed_;
}

job_inbox::first job_inbox::front() noexcept {
  const std::lock_guard mine(taking_);
  if (taken_.size() == 0) return {};
  const job_slot& oldest = taken_.front();
  return {oldest.holds_job() ? first::kind::job : first::kind::function, oldest.site};
}

bool job_inbox::pop(first::kind what, std::optional<job_slot>& into) noexcept {
  decltype(taken_)::room used;  // freed when the lock is free again
  bool uncovers = false;
  {
    const std::lock_guard mine(taking_);
    if (taken_.size() == 0 || taken_.front().holds_job() != (what == first::kind::job))
      return false;
    used = taken_.pop(into);
    add(gone_, 1);
    add(begun_, 1);
    uncovers = !into->movable() && taken_.size() > 0;
  }
  if (uncovers && load_ != nullptr) load_->pool->rouse_another(*load_);
  return true;
}

/// Moves the remaining jobs out before it destroys them: destruction may take a while, and no fiber
/// may start one meanwhile.
void job_inbox::close(thread_state& home) noexcept {
  item_queue<job_slot> later;  // destroyed in reverse
  item_queue<job_slot> sooner;
  {
    const std::lock_guard mine(taking_);
    const std::lock_guard in(sharing_);
    closed_ = true;
    awaited_ = false;
    sooner.swap(taken_);
    later.swap(arrived_);
  }
  // The jobs that the worker has begun may still end, and the pool may go after that.
  worker_load* const load = std::exchange(load_, nullptr);
  if (load != nullptr && !std::exchange(rests_, true)) load->pool->begin_rest(*load);
  if (waiting_ != nullptr) home.resume(*waiting_, wake_reason::handed);
}

}}}  // namespace motet::MOTET_ABI::detail
