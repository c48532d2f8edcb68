// SPDX-License-Identifier: MIT
// See threads/pool_state.hpp. Which worker gets a job, and how the end of the last job is noticed.
#include "threads/pool_state.hpp"

#include <limits>
#include <mutex>

#include "ground/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A worker writes `finished` all the time, so each read of it costs a cache miss. A worker that
/// had so many jobs to do is not idle so soon, in about a microsecond.
constexpr std::uint64_t far_from_idle = 32;
constexpr std::uint64_t soon = 2'000;  // ticks

std::uint64_t finished_by(worker_load& worker, std::uint64_t given) noexcept {
  const std::uint64_t seen = worker.seen_finished.load(std::memory_order_relaxed);
  const bool far = given - seen >= far_from_idle;
  const std::uint64_t now = far ? ticks() : 0;
  if (far && now - worker.seen_at.load(std::memory_order_relaxed) < soon) return seen;
  const std::uint64_t finished = worker.finished.load(std::memory_order_relaxed);
  worker.seen_finished.store(finished, std::memory_order_relaxed);
  if (far) worker.seen_at.store(now, std::memory_order_relaxed);
  return finished;
}

}  // namespace

/// If several threads give jobs, only one gets an idle worker: the others see that it is idle no
/// more. The search begins with the worker that had the last job: if it is idle again, it may still
/// be awake.
std::size_t pool_state::choose() noexcept {
  const std::size_t first = last_chosen.load(std::memory_order_relaxed);
  std::size_t least = first;
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t number = first + i < count ? first + i : first + i - count;
    worker_load& each = loads[number];
    const std::uint64_t given = each.given.load(std::memory_order_relaxed);
    std::uint64_t finished = finished_by(each, given);
    if (given == finished && each.given.compare_exchange_strong(finished, given + 1)) {
      remember(number);
      return number;
    }
    if (given - finished < lowest) {
      lowest = given - finished;
      least = number;
    }
  }
  loads[least].given.fetch_add(1);
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
bool pool_state::idle(std::size_t first, std::size_t how_many) const noexcept {
  std::uint64_t under_way = 0;
  for (std::size_t i = first; i < first + how_many; ++i) under_way -= loads[i].finished.load();
  for (std::size_t i = first; i < first + how_many; ++i) under_way += loads[i].given.load();
  return under_way == 0;
}

void pool_state::await_idle(std::size_t first, std::size_t how_many) {
  struct counted {
    std::atomic<unsigned>& count;
    explicit counted(std::atomic<unsigned>& of) noexcept : count(of) { ++count; }
    ~counted() { --count; }
  } waiting(awaiting_idle);
  std::unique_lock lock(idling);
  while (!idle(first, how_many)) idled.wait(lock);
}

/// No wake is lost: a fiber raises awaiting_idle before it looks at the loads, and this worker has
/// counted the job as finished before it looks at awaiting_idle.
void pool_state::announce_idle(const worker_load& worker) noexcept {
  if (awaiting_idle.load() == 0 || worker.finished.load() != worker.given.load()) return;
  {
    const std::lock_guard looking(idling);
  }
  idled.notify_all();
}

}}}  // namespace motet::MOTET_ABI::detail
