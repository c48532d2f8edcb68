// SPDX-License-Identifier: MIT
// A fiber that overflows its stack hits the guard page and crashes; before that, one line
// identifies the fiber. The handler runs on a signal stack of the thread.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The thread's alternate signal stack, unless it has one already. Source: sigaltstack(2).
class alternate_stack {
 public:
  /// Makes the process report overflows from now on, unless MOTET_DISABLE says overflow_report; a
  /// handler of SIGSEGV that there was before is called after ours.
  alternate_stack() noexcept;
  alternate_stack(const alternate_stack&) = delete;
  alternate_stack& operator=(const alternate_stack&) = delete;
  ~alternate_stack();

 private:
  void* memory_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
