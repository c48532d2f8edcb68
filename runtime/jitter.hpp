// SPDX-License-Identifier: MIT
// Points at which a race is widened: with -Djitter=true a short random delay, otherwise nothing.
#pragma once

#if defined(MOTET_JITTER)
#include <sched.h>

#include <cstdint>

#include "ticks.hpp"
#endif

namespace motet::inline MOTET_ABI::detail {

inline void jitter() noexcept {
#if defined(MOTET_JITTER)
  const std::uint64_t dice = (ticks() * 0x9e3779b97f4a7c15U) >> 56;
  if (dice < 8) ::sched_yield();
  for (std::uint64_t round = dice & 63; round > 0; --round) asm volatile("" ::: "memory");
#endif
}

}  // namespace motet::inline MOTET_ABI::detail
