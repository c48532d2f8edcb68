// SPDX-License-Identifier: MIT
// See pool_state.hpp. Who gets a job, and how the end of the last one is noticed.
#include "pool_state.hpp"

#include <limits>
#include <mutex>

namespace motet::inline MOTET_ABI::detail {

/// Of several givers only one gets an idle worker: the others see that it is no more.
std::size_t pool_state::choose() noexcept {
  const std::size_t first = turn.fetch_add(1, std::memory_order_relaxed);
  std::size_t least = 0;
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t number = (first + i) % count;
    worker_load& each = loads[number];
    std::uint64_t done = each.finished.load(std::memory_order_relaxed);
    const std::uint64_t load = each.given.load(std::memory_order_relaxed) - done;
    if (load == 0 && each.given.compare_exchange_strong(done, done + 1)) return number;
    if (load < lowest) {
      lowest = load;
      least = number;
    }
  }
  loads[least].given.fetch_add(1);
  return least;
}

/// What was finished is summed up first: if then no more had been given, nothing was under way in
/// between.
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

/// Whoever waits has said so before it looked, and this worker has counted before it looks here.
void pool_state::tell_idle(const worker_load& worker) noexcept {
  if (awaiting_idle.load() == 0 || worker.finished.load() != worker.given.load()) return;
  {
    const std::lock_guard looking(idling);
  }
  idled.notify_all();
}

}  // namespace motet::inline MOTET_ABI::detail
