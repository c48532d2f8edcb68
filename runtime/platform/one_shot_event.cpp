// SPDX-License-Identifier: MIT
// See detail/platform/one_shot_event.hpp.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <motet/detail/platform/one_shot_event.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

void one_shot_event::wait() noexcept {
  while (flag_.load(std::memory_order_acquire) == 0) {
    ::syscall(SYS_futex, &flag_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
}

bool one_shot_event::wait_until(clock::time_point deadline) noexcept {
  const auto since_boot = deadline.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since_boot);
  const timespec due{whole.count(), (since_boot - whole).count()};
  while (flag_.load(std::memory_order_acquire) == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    // Source: futex(2): the time of FUTEX_WAIT_BITSET is an instant of CLOCK_MONOTONIC.
    ::syscall(SYS_futex, &flag_, FUTEX_WAIT_BITSET_PRIVATE, 0, &due, nullptr,
              FUTEX_BITSET_MATCH_ANY);
  }
  return flag_.load(std::memory_order_acquire) != 0;
}

void one_shot_event::set() noexcept {
  flag_.store(1, std::memory_order_release);
  // The event may be gone by now, but waking at the address of a dead futex does no harm.
  ::syscall(SYS_futex, &flag_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}}}  // namespace motet::MOTET_ABI::detail
