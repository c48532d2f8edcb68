// SPDX-License-Identifier: MIT
// What a report says of a fiber that may go on, or end, at any moment.
#pragma once

#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/detail/core/control_block.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct fiber_facts {
  std::uint64_t id = 0;
  call_site site;
  bool is_main = false;
  std::string name;
  stack runs_on;
};

/// Any thread. Returns: what was seen, which counts only if the fiber turns out to have stayed.
/// Throws: std::bad_alloc.
fiber_facts metadata_of(const control_block& fiber);

}}}  // namespace motet::MOTET_ABI::detail
