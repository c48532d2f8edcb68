// SPDX-License-Identifier: MIT
// See threads/pool_state.hpp. Which worker gets a job, how a job moves to another one, and how the
// end of the last job is noticed.
#include "threads/pool_state.hpp"

#include <algorithm>
#include <limits>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/core/inherited_locals.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <mutex>

#include "core/thread_state.hpp"
#include "platform/ticks.hpp"
#include "threads/job_inbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Workers write `completions` all the time, so each read of it costs a cache miss. A worker with
/// this many jobs does not become idle within about a microsecond.
constexpr std::int64_t far_from_idle = 32;

/// `awake`: no worker rests, so that it does no harm if one is idle and not seen to be.
std::uint64_t finished_by(worker_load& worker, std::uint64_t jobs, bool awake,
                          std::uint64_t short_time) noexcept {
  const std::uint64_t last_count = worker.seen_finished.load(std::memory_order_relaxed);
  const bool may_be_old = awake || static_cast<std::int64_t>(jobs - last_count) >= far_from_idle;
  const std::uint64_t present = may_be_old ? ticks() : 0;
  if (may_be_old && present - worker.seen_at.load(std::memory_order_relaxed) < short_time)
    return last_count;
  const std::uint64_t completions = worker.completions.load(std::memory_order_relaxed);
  worker.seen_finished.store(completions, std::memory_order_relaxed);
  if (may_be_old) worker.seen_at.store(present, std::memory_order_relaxed);
  return completions;
}

std::uint64_t moved_to(const worker_load& worker) noexcept {
  return static_cast<std::uint64_t>(worker.steal_balance.load());
}

}  // namespace

std::int64_t load_of(const worker_load& worker) noexcept {
  const std::uint64_t completions = worker.completions.load();
  return static_cast<std::int64_t>(worker.arrivals.load() + moved_to(worker) - completions);
}

bool pool_state::on_worker() const noexcept {
  const thread_state* const home = self();
  return home != nullptr && home->pool == this;
}

/// While no worker rests, one that submits a job keeps it: the next one to rest may steal it.
std::size_t pool_state::keeper() noexcept {
  const bool keeps = on_worker() && !any_resting(roles.load(std::memory_order_relaxed));
  return keeps ? static_cast<std::size_t>(self()->load - loads.get()) : least_loaded;
}

/// If several threads submit jobs, only one gets an idle worker: the others see that it is no
/// longer idle. The search begins with the worker that got the last job: if it is idle again, it
/// may still be awake.
std::size_t pool_state::choose() noexcept {
  const std::size_t first = last_chosen.load(std::memory_order_relaxed);
  const bool awake = !any_resting(roles.load(std::memory_order_relaxed));
  std::size_t least = first;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t number = first + i < count ? first + i : first + i - count;
    worker_load& worker = loads[number];
    std::uint64_t jobs = worker.arrivals.load(std::memory_order_relaxed);
    const std::uint64_t had = jobs + moved_to(worker);
    const auto load = static_cast<std::int64_t>(had - finished_by(worker, had, awake, microsecond));
    if (load <= 0 && worker.arrivals.compare_exchange_strong(jobs, jobs + 1)) {
      remember(number);
      return number;
    }
    if (load < lowest) {
      lowest = load;
      least = number;
    }
  }
  loads[least].arrivals.fetch_add(1);
  remember(least);
  return least;
}

void pool_state::enter() {
  if (made_in != this_process()) throw executor_stopped();
  check_running();
  if (!slots) return;
  slots->acquire();
  if (!stopping.load()) return;
  release_slot();
  throw executor_stopped();
}

void pool_state::check_running() const {
  if (stopping.load()) throw executor_stopped();
}

void give(const std::shared_ptr<pool_state>& pool, job_slot&& item, pool_job& job,
          local_list&& inherited_locals, std::size_t worker) {
  pool->enter();
  pool->give(std::move(item), job, std::move(inherited_locals), worker);
}

void pool_state::give(job_slot&& item, pool_job& job, local_list&& inherited_locals,
                      std::size_t worker) {
  const bool movable = item.movable();
  if (worker == any_worker) worker = keeper();
  if (worker == least_loaded) {
    worker = choose();
  } else {
    loads[worker].arrivals.fetch_add(1);
  }
  job.give_to(loads[worker]);
  if (!inherited_locals.empty()) [[unlikely]] {
    const call_site site = item.site;
    heir whole_job(std::move(inherited_locals), std::move(item));
    return push(job_slot::holding(std::move(whole_job), site, movable), movable, loads[worker]);
  }
  push(std::move(item), movable, loads[worker]);
}

/// The job may own the pool and end before push() does. The workers share the pool's ownership.
std::shared_ptr<pool_state> pool_state::owner_during_push() {
  return on_worker() ? nullptr : shared_from_this();
}

void pool_state::push(job_slot&& item, bool movable, worker_load& worker) {
  using enum job_inbox::pushed;
  const std::shared_ptr<pool_state> owner = owner_during_push();
  job_inbox& inbox = *worker.inbox.load(std::memory_order_acquire);
  const auto result = inbox.push(std::move(item), movable ? this : nullptr);
  if (result == refused) throw executor_stopped();
  if (movable && result == accepted) rouse_another(worker);
}

void pool_state::remember(std::size_t number) noexcept {
  if (last_chosen.load(std::memory_order_relaxed) != number) {
    last_chosen.store(number, std::memory_order_relaxed);
  }
}

/// The finished jobs are summed up before the given ones: if the sums are equal, no job was under
/// way between the two.
bool pool_state::idle() const noexcept {
  std::uint64_t under_way = 0;
  for (std::size_t i = 0; i < count; ++i) under_way -= loads[i].completions.load();
  for (std::size_t i = 0; i < count; ++i) under_way += loads[i].arrivals.load();
  return under_way == 0;
}

/// No wake is lost: a worker that counts a finished job while it rests looks at awaiting_idle
/// afterwards; one that does not rest will, and both change `roles`.
void pool_state::await_idle() {
  struct counted {
    atomic<unsigned>& count;
    explicit counted(atomic<unsigned>& counter) noexcept : count(counter) { ++count; }
    ~counted() { --count; }
  } waiter(awaiting_idle);
  roles.fetch_add(0);
  std::unique_lock lock(idle_mutex);
  while (!idle()) idle_condition.wait(lock);
}

/// The fiber may wait for the lock, and the pool's last worker end meanwhile.
void pool_state::announce_idle() noexcept {
  if (awaiting_idle.load() == 0) return;
  roles.fetch_add(0);
  if (!idle()) return;
  const std::shared_ptr<pool_state> owner = shared_from_this();
  const internal_shield safe;
  {
    const std::lock_guard lock(idle_mutex);
  }
  idle_condition.notify_all();
}

bool pool_state::begin_search() noexcept {
  if (!any_resting(roles.load(std::memory_order_relaxed))) return false;
  roles.fetch_add(one_searching);
  return true;
}

/// A thread that has seen a searcher had posted its job before, so the job is seen here. One job in
/// the searcher's own queue, or of a worker that is woken here, needs nobody else.
void pool_state::end_search(const worker_load& worker) noexcept {
  if (any_searching(roles.fetch_sub(one_searching) - one_searching)) return;
  bool more = false;
  for (std::size_t i = 0; i < count; ++i) {
    job_inbox* inbox = loads[i].inbox.load(std::memory_order_acquire);
    const std::int64_t queue = inbox != nullptr ? inbox->queue() : 0;
    if (queue <= 0) continue;
    const bool rests = loads[i].dry.load(std::memory_order_relaxed);
    const bool is_served = &loads[i] == &worker || (rests && inbox->wake());
    more = more || queue > 1 || !is_served;
  }
  if (more) rouse_another(worker);
}

bool pool_state::is_needed_elsewhere(const worker_load& worker) const noexcept {
  if (awaiting_idle.load() != 0) return true;
  for (std::size_t i = 0; i < count; ++i) {
    const job_inbox* inbox = loads[i].inbox.load(std::memory_order_acquire);
    if (&loads[i] != &worker && inbox != nullptr && inbox->queue() > 0) return true;
  }
  return false;
}

void pool_state::begin_rest(worker_load& worker) noexcept {
  worker.dry.store(true, std::memory_order_relaxed);
  roles.fetch_add(1);
  announce_idle();
}

namespace {

/// A worker that is still waking up begins its jobs soon.
bool wakes_up(const worker_load& worker) noexcept {
  return worker.dry.load(std::memory_order_relaxed);
}

/// Returns: how many jobs `thief` may steal without having more than `victim` afterwards.
std::int64_t fair_share(const worker_load& thief, const worker_load& victim) noexcept {
  return (load_of(victim) - load_of(thief)) / 2;
}

/// Returns: how many jobs of `victim` the thief may steal.
std::int64_t share_of(const worker_load& thief, const worker_load& victim, bool overdue,
                      bool waking) noexcept {
  const std::int64_t share = waking ? 0 : fair_share(thief, victim);
  return overdue ? std::max<std::int64_t>(share, 1) : share;
}

/// Returns: whether a job was stolen.
bool steal(worker_load& thief, worker_load& victim, job_inbox& inbox, stolen_jobs& loot,
           std::int64_t limit) noexcept {
  inbox.give_away(loot, static_cast<std::size_t>(limit));
  const auto jobs = static_cast<std::int64_t>(loot.count);
  thief.steal_balance.fetch_add(jobs);
  victim.steal_balance.fetch_sub(jobs);
  return jobs > 0;
}

}  // namespace

/// No job is left behind while its worker is busy and another one rests: that one changes `roles`
/// before it looks at the queues, and a producer reads `roles` after the job is in its place. All
/// of these accesses are sequentially consistent, so one of the two sees what the other has done.
clock::time_point pool_state::steal_into(worker_load& thief, stolen_jobs& loot,
                                         clock::time_point present) noexcept {
  const auto number = static_cast<std::size_t>(&thief - loads.get());
  clock::time_point look_at = clock::time_point::max();
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t other = (number + i) % count;
    worker_load& worker = loads[other];
    job_inbox* inbox = worker.inbox.load(std::memory_order_acquire);
    if (inbox == nullptr) continue;
    const std::uint64_t departures = inbox->departures();
    const std::int64_t queue = inbox->queue();
    if (queue <= 0) continue;
    seen_queue& jobs = queues[number * count + other];
    if (departures >= jobs.over_at)
      jobs = {departures + static_cast<std::uint64_t>(queue), present};
    const bool waking = wakes_up(worker);
    const bool overdue = jobs.is_overdue(waking, present);
    const std::int64_t share = share_of(thief, worker, overdue, waking);
    if (share > 0 && steal(thief, worker, *inbox, loot, share)) {
      jobs = {};  // the next ones are overdue later
      break;
    }
    if (!overdue)
      look_at = std::min(look_at, jobs.look_at(waking, present));  // else they must stay
  }
  return look_at;
}

void pool_state::rouse_another(const worker_load& busy) noexcept {
  const std::uint64_t seen = roles.load();
  if (any_searching(seen) || !any_resting(seen)) return;
  for (std::size_t i = 0; i < count; ++i) {
    const worker_load& worker = loads[i];
    if (&worker == &busy || !worker.dry.load(std::memory_order_relaxed)) continue;
    job_inbox* inbox = worker.inbox.load(std::memory_order_acquire);
    if (inbox != nullptr && inbox->rouse()) return;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
