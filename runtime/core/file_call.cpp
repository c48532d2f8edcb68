// SPDX-License-Identifier: MIT
// See core/file_call.hpp.
#include "core/file_call.hpp"

#include <cerrno>

#include "base/verb_table.hpp"
#include "core/hooks.hpp"
#include "platform/offload/blocking_pool.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

std::int32_t call_and_block(operation& op) noexcept {
  std::int32_t result = 0;
  do {
    result = row_of(op.kind).call(op, false);
  } while (result == -EINTR);
  return result;
}

void file_call::await_end() noexcept {
  if (hooks.await_thread(end_, *this)) return;
  withdraw();
  end_.await_end();
}

void file_call::withdraw() noexcept {
  if (!blocking_pool::withdraw(*this)) return;
  op_->result = -ECANCELED;
  notify();
}

bool file_call::run() noexcept {
  op_->result = call_and_block(*op_);
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
