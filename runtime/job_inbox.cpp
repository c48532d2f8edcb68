// SPDX-License-Identifier: MIT
// See job_inbox.hpp. No wake is lost: whoever pushes learns from the very word it changes whether
// it is awaited, and the fiber that waits has put that there only where nothing was.
#include "job_inbox.hpp"

#include <motet/detail/jitter.hpp>
#include <utility>

#include "mailbox.hpp"
#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

job_inbox::job_inbox() noexcept {
  wake_up_.inbox = this;
  wake_up_.arrive = [](post& item, thread_state& home) noexcept {
    wait_record* wait = static_cast<wake_up&>(item).inbox->waiting_;
    if (wait != nullptr) home.resume(*wait, wake_reason::handed);
  };
}

bool job_inbox::push(job& item) noexcept {
  const auto place = reinterpret_cast<std::uintptr_t>(&item);
  std::uintptr_t seen = newest_.load(std::memory_order_relaxed);
  do {
    jitter();
    if (seen == closed) return false;
    item.next = seen == awaited ? nullptr : reinterpret_cast<job*>(seen);
  } while (!newest_.compare_exchange_weak(seen, place, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  if (seen == awaited) home_->push(wake_up_);
  return true;
}

job* job_inbox::oldest_first(std::uintptr_t newest) noexcept {
  job* first = nullptr;
  for (auto* each = reinterpret_cast<job*>(newest); each != nullptr;) {
    job* older = std::exchange(each->next, first);
    first = std::exchange(each, older);
  }
  return first;
}

job* job_inbox::take(thread_state& home) noexcept {
  for (;;) {
    const std::uintptr_t seen = newest_.load(std::memory_order_relaxed);
    if (seen == closed) return nullptr;
    if (seen != 0) return oldest_first(newest_.exchange(0, std::memory_order_acq_rel));
    if (!await(home)) return nullptr;
  }
}

/// Returns: false if the fiber was interrupted.
bool job_inbox::await(thread_state& home) noexcept {
  std::uintptr_t nothing = 0;
  if (!newest_.compare_exchange_strong(nothing, awaited)) return true;
  jitter();
  wait_record wait("jobs");
  waiting_ = &wait;
  const bool interrupted = home.park(wait) == wake_reason::interrupted;
  waiting_ = nullptr;
  return !interrupted;
}

job* job_inbox::close() noexcept {
  const std::uintptr_t left = newest_.exchange(closed, std::memory_order_acq_rel);
  if (left != awaited) return left == closed ? nullptr : oldest_first(left);
  if (waiting_ != nullptr && self() != nullptr) self()->resume(*waiting_, wake_reason::handed);
  return nullptr;
}

}  // namespace motet::inline MOTET_ABI::detail
