// SPDX-License-Identifier: MIT
// See heart/file_call.hpp.
#include "heart/file_call.hpp"

#include <sys/uio.h>

#include <cerrno>

#include "ground/offload_threads.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

std::int32_t call_and_block(const operation& op) noexcept {
  const bool vectored = op.kind == verb::readv || op.kind == verb::writev;
  const bool reads = op.kind == verb::read || op.kind == verb::readv;
  iovec single{};
  if (!vectored) single = {op.buffer, op.length};
  const iovec* buffers = vectored ? op.vectors : &single;
  const int count = vectored ? static_cast<int>(op.length) : 1;
  ssize_t moved = 0;
  do {
    moved = reads ? ::readv(op.fd, buffers, count) : ::writev(op.fd, buffers, count);
  } while (moved < 0 && errno == EINTR);
  return moved < 0 ? -errno : static_cast<std::int32_t>(moved);
}

void file_call::await_end() noexcept {
  if (end_.await()) return;
  call_off();
  end_.await_end();
}

void file_call::call_off() noexcept {
  if (!offload_threads::withdraw(*this)) return;
  op_->result = -ECANCELED;
  tell();
}

bool file_call::run() noexcept {
  op_->result = call_and_block(*op_);
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
