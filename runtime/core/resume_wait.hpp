// SPDX-License-Identifier: MIT
// The wait of suspend_with().
#pragma once

#include <cstdint>
#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/wait_record.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// In the frame of the fiber.
struct resume_wait {
  wait_record wait{"suspend_with"};
  std::uint64_t number = 0;
  bool broken = false;
  value_slot value;
};

}}}  // namespace motet::MOTET_ABI::detail
