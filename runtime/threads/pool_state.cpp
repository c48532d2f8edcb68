// SPDX-License-Identifier: MIT
// See threads/pool_state.hpp. Which worker gets a job, how a job moves to another one, and how the
// end of the last job is noticed.
#include "threads/pool_state.hpp"

#include <limits>
#include <motet/detail/core/internal_shield.hpp>
#include <mutex>

#include "platform/ticks.hpp"
#include "threads/job_inbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Workers write `finished` all the time, so each read of it costs a cache miss. A worker with this
/// many jobs does not become idle within about a microsecond.
constexpr std::int64_t far_from_idle = 32;
constexpr std::uint64_t soon = 2'000;  // ticks

std::uint64_t finished_by(worker_load& worker, std::uint64_t given) noexcept {
  const std::uint64_t seen = worker.seen_finished.load(std::memory_order_relaxed);
  const bool far = static_cast<std::int64_t>(given - seen) >= far_from_idle;
  const std::uint64_t now = far ? ticks() : 0;
  if (far && now - worker.seen_at.load(std::memory_order_relaxed) < soon) return seen;
  const std::uint64_t finished = worker.completions.load(std::memory_order_relaxed);
  worker.seen_finished.store(finished, std::memory_order_relaxed);
  if (far) worker.seen_at.store(now, std::memory_order_relaxed);
  return finished;
}

std::uint64_t moved_to(const worker_load& worker) noexcept {
  return static_cast<std::uint64_t>(worker.steal_balance.load());
}

}  // namespace

std::int64_t load_of(const worker_load& worker) noexcept {
  const std::uint64_t finished = worker.completions.load();
  return static_cast<std::int64_t>(worker.arrivals.load() + moved_to(worker) - finished);
}

/// If several threads submit jobs, only one gets an idle worker: the others see that it is no
/// longer idle. The search begins with the worker that got the last job: if it is idle again, it
/// may still be awake.
std::size_t pool_state::choose() noexcept {
  const std::size_t first = last_chosen.load(std::memory_order_relaxed);
  std::size_t least = first;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t number = first + i < count ? first + i : first + i - count;
    worker_load& each = loads[number];
    std::uint64_t given = each.arrivals.load(std::memory_order_relaxed);
    const std::uint64_t had = given + moved_to(each);
    const auto load = static_cast<std::int64_t>(had - finished_by(each, had));
    if (load <= 0 && each.arrivals.compare_exchange_strong(given, given + 1)) {
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

void pool_state::remember(std::size_t chosen) noexcept {
  if (last_chosen.load(std::memory_order_relaxed) != chosen) {
    last_chosen.store(chosen, std::memory_order_relaxed);
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
/// afterwards; one that does not rest will, and both change `resting`.
void pool_state::await_idle() {
  struct counted {
    std::atomic<unsigned>& count;
    explicit counted(std::atomic<unsigned>& of) noexcept : count(of) { ++count; }
    ~counted() { --count; }
  } waiting(awaiting_idle);
  resting.fetch_add(0);
  std::unique_lock lock(idling);
  while (!idle()) idled.wait(lock);
}

/// The fiber may wait for the lock, and the pool's last worker end meanwhile.
void pool_state::announce_idle() noexcept {
  if (awaiting_idle.load() == 0) return;
  resting.fetch_add(0);
  if (!idle()) return;
  const std::shared_ptr<pool_state> kept = shared_from_this();
  const internal_shield safe;
  {
    const std::lock_guard looking(idling);
  }
  idled.notify_all();
}

void pool_state::begin_rest(worker_load& worker) noexcept {
  worker.dry.store(true, std::memory_order_relaxed);
  resting.fetch_add(1);
  announce_idle();
}

void pool_state::end_rest(worker_load& worker) noexcept {
  resting.fetch_sub(1);
  worker.dry.store(false, std::memory_order_relaxed);
}

namespace {

/// A worker that is still waking up begins its jobs soon.
bool wakes_up(const worker_load& worker) noexcept {
  return worker.dry.load(std::memory_order_relaxed);
}

/// Returns: how many jobs `thief` may steal without having more than `other` afterwards.
std::int64_t fair_share(const worker_load& thief, const worker_load& other) noexcept {
  return (load_of(other) - load_of(thief)) / 2;
}

/// Returns: how many of the `queue` jobs of `other` the thief may steal.
std::int64_t share_of(const worker_load& thief, const worker_load& other, std::int64_t queue,
                      bool overdue, bool waking) noexcept {
  if (waking) return overdue ? 1 : 0;
  return overdue ? queue : fair_share(thief, other);
}

observed_queue queue_of(worker_load& owner, std::uint64_t begun, std::int64_t size, bool waking,
                        clock::time_point present) noexcept {
  const clock::duration time = waking ? clock::duration(patience_with_waking) : patience;
  return {&owner, begun + static_cast<std::uint64_t>(size), waking, present + time};
}

/// Returns: whether a job was stolen.
bool take(worker_load& thief, worker_load& other, job_inbox& from, stolen_jobs& into,
          std::int64_t most) noexcept {
  from.give_away(into, static_cast<std::size_t>(most));
  const auto taken = static_cast<std::int64_t>(into.count);
  thief.steal_balance.fetch_add(taken);
  other.steal_balance.fetch_sub(taken);
  return taken > 0;
}

}  // namespace

/// No job is left behind while its worker is busy and another one rests: that one rests before it
/// looks at `given`, and the giver looks at `resting` after the job is in its place.
observed_queue pool_state::steal_into(worker_load& thief, stolen_jobs& into,
                                      const observed_queue& before,
                                      clock::time_point present) noexcept {
  const auto own = static_cast<std::size_t>(&thief - loads.get());
  observed_queue longest;
  std::int64_t most = 0;
  for (std::size_t i = 1; i < count; ++i) {
    worker_load& each = loads[(own + i) % count];
    job_inbox* inbox = each.inbox.load(std::memory_order_acquire);
    if (inbox == nullptr) continue;
    const std::uint64_t begun = inbox->begun();
    const std::int64_t queue = inbox->queue();
    if (queue <= 0) continue;
    const bool known = before.owner == &each && begun < before.over_at;
    const bool overdue = known && present >= before.overdue_at;
    const bool waking = wakes_up(each);
    const std::int64_t share = share_of(thief, each, queue, overdue, waking);
    if (share > 0 && take(thief, each, *inbox, into, share)) return {};
    if (overdue || queue <= most) continue;  // overdue: its jobs must stay
    most = queue;
    longest = known ? before : queue_of(each, begun, queue, waking, present);
  }
  return longest;
}

void pool_state::rouse_another(const worker_load& busy) noexcept {
  if (resting.load() == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    const worker_load& each = loads[i];
    if (&each == &busy || !each.dry.load(std::memory_order_relaxed)) continue;
    job_inbox* inbox = each.inbox.load(std::memory_order_acquire);
    if (inbox != nullptr && inbox->rouse()) return;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
