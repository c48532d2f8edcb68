// SPDX-License-Identifier: MIT
// See detail/thread_gate.hpp.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <motet/detail/thread_gate.hpp>

namespace motet::inline MOTET_ABI::detail {

void thread_gate::wait() noexcept {
  while (open_.load(std::memory_order_acquire) == 0) {
    ::syscall(SYS_futex, &open_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
}

void thread_gate::open() noexcept {
  open_.store(1, std::memory_order_release);
  // The frame may be gone by now; waking a futex that is no more wakes nobody.
  ::syscall(SYS_futex, &open_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace motet::inline MOTET_ABI::detail
