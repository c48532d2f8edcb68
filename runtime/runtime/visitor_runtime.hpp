// SPDX-License-Identifier: MIT
// A fiber on a thread that has no runtime.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The runtime that a visiting fiber finds on that thread; there may be an earlier visitor's, which
/// is put back at the end.
class visitor_runtime {
 public:
  /// Throws: std::bad_alloc; stack_unavailable if memory is short.
  visitor_runtime();
  visitor_runtime(const visitor_runtime&) = delete;
  visitor_runtime& operator=(const visitor_runtime&) = delete;
  ~visitor_runtime();

 private:
  const std::uintptr_t saved_slot_;  // what stood in the runtime's place
};

}}}  // namespace motet::MOTET_ABI::detail
