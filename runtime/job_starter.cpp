// SPDX-License-Identifier: MIT
// How a job gets a fiber: in order of arrival, and not many more at once than are about to run, or
// a million small ones would take a million stacks.
#include <algorithm>
#include <chrono>
#include <motet/cancel.hpp>
#include <motet/detail/launch.hpp>
#include <motet/time.hpp>
#include <new>
#include <utility>

#include "thread_link.hpp"
#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

namespace {

using namespace std::chrono_literals;

/// Their stacks stay in the processor's cache.
constexpr int started_in_a_row = 32;

void start(thread_state& home, job& item) {
  launch fresh(&cold(home.main_fiber()).own, nullptr, item.kind(), item.site);
  item.body(fresh.body());
  const handle fiber = fresh.start();
  item.begin(*fiber.get());
}

/// Without memory for its fiber, one that nobody waits for is tried again and again.
/// Throws: `cancelled` once the thread's function has been left.
void start_when_possible(thread_state& home, job& item) {
  for (auto pause = 1ms;; pause = std::min(pause * 2, 1000ms)) {
    try {
      start(home, item);
      return;
    } catch (const std::bad_alloc&) {
      if (item.awaited) throw;
    }
    sleep_for(pause);
  }
}

void start_or_refuse(thread_state& home, job& item) noexcept {
  try {
    start_when_possible(home, item);
  } catch (const cancelled&) {
    shield([&] { item.refuse(std::make_exception_ptr(executor_stopped())); });
  } catch (...) {
    shield([&] { item.refuse(std::current_exception()); });
  }
}

}  // namespace

void start_jobs(thread_state& home, job_inbox& from) {
  while (job* next = from.take(home)) {
    for (int in_a_row = 1; next != nullptr; ++in_a_row) {
      job& item = *std::exchange(next, next->next);
      start_or_refuse(home, item);
      if (in_a_row % started_in_a_row == 0) home.snooze();
    }
  }
}

}  // namespace motet::inline MOTET_ABI::detail
