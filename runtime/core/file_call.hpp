// SPDX-License-Identifier: MIT
// An operation that would block the thread of its fiber, as one on a file may, and is performed by
// a plain thread instead.
#pragma once

#include <motet/detail/base/blocking_call.hpp>
#include <motet/runtime/backend.hpp>

#include "core/mail/remote_wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Makes the call that `op`, which is on a file, describes, and blocks until it is over.
/// Returns: what the call returns, or minus an errno value.
std::int32_t call_and_block(operation& op) noexcept;

/// In the frame of the fiber that waits for it.
class file_call final : public blocking_call {
 public:
  file_call(operation& op, const char* description) noexcept : op_(&op), end_(description, op.fd) {
    pool = offload_pool::own;
  }

  /// Waits until the call has ended. If the fiber is interrupted, the call is withdrawn first.
  void await_end() noexcept;
  /// Ends it, with -ECANCELED, if no thread has begun it.
  void withdraw() noexcept;

 private:
  bool run() noexcept override;
  void notify() noexcept override { end_.end(); }

  operation* op_;
  remote_wait end_;
};

}}}  // namespace motet::MOTET_ABI::detail
