// SPDX-License-Identifier: MIT
// See detail/base/race_point.hpp.
#include <motet/detail/base/race_point.hpp>

#if defined(MOTET_JITTER)
#include <sched.h>

#include <cstdint>

#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void race_point() noexcept {
  const std::uint64_t dice = (ticks() * 0x9e3779b97f4a7c15U) >> 56;
  if (dice < 8) ::sched_yield();
  for (std::uint64_t round = dice & 63; round > 0; --round) asm volatile("" ::: "memory");
}

}}}  // namespace motet::MOTET_ABI::detail
#endif
