// SPDX-License-Identifier: MIT
// The state that a thread_pool and its workers share.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <motet/condition_variable.hpp>
#include <motet/detail/threads/pool_task.hpp>
#include <motet/event.hpp>
#include <motet/mutex.hpp>
#include <motet/options.hpp>
#include <motet/semaphore.hpp>
#include <motet/thread.hpp>
#include <optional>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct pool_state {
  explicit pool_state(std::size_t workers)
      : count(workers), loads(std::make_unique<worker_load[]>(workers)) {
    threads.reserve(workers);
    for (std::size_t i = 0; i < workers; ++i) loads[i].pool = this;
  }

  /// Returns: the number of the worker that a job should go to; the worker's load counts the job
  ///          already.
  std::size_t choose() noexcept;
  void remember(std::size_t chosen) noexcept;
  /// Returns: whether the `how_many` workers from `first` on had nothing to do at some time during
  ///          this call.
  bool idle(std::size_t first, std::size_t how_many) const noexcept;
  /// Waits until these workers are idle.
  /// Throws: what is pending for this fiber.
  void await_idle(std::size_t first, std::size_t how_many);
  /// Called by a worker that has finished a job: if it has no more, tells those in await_idle().
  void announce_idle(const worker_load& worker) noexcept;

  const std::size_t count;
  const std::unique_ptr<worker_load[]> loads;
  std::vector<thread> threads;
  const options how = options_here();  // of the workers
  std::optional<semaphore> room;
  std::atomic<std::size_t> last_chosen{0};
  std::atomic<std::size_t> strands{0};
  std::atomic<bool> stopping{false};
  std::atomic<bool> discarding{false};
  event stopped;
  std::atomic<unsigned> awaiting_idle{0};
  mutex idling;
  condition_variable idled;
};

}}}  // namespace motet::MOTET_ABI::detail
