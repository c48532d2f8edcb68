// SPDX-License-Identifier: MIT
// An operation from its submission to its end. The kernel may write to its buffer until then, so an
// interruption asks for cancellation and goes on waiting; what was too late to cancel is returned
// as if nothing had been asked, and the interruption waits for the next switchpoint.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "ground/offload_threads.hpp"
#include "ground/valgrind.hpp"
#include "heart/file_call.hpp"
#include "heart/thread_state.hpp"
#include "words/remote_work.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A disk read in a kernel worker that was cancelled may tell so in the kernel's own words.
constexpr std::int32_t erestartsys = 512;

bool means_cancelled(std::int32_t result) {
  return result == -ECANCELED || result == -EINTR || result == -erestartsys;
}

/// A cancelled connect goes on in the kernel, which would answer EALREADY to the next one.
/// Source: connect(2), AF_UNSPEC.
void take_back_connect(int fd) noexcept {
  const sockaddr nobody{AF_UNSPEC, {}};
  ::connect(fd, &nobody, sizeof nobody);
}

/// Says which memory a ring has filled.
void account_for(const operation& op) noexcept {
  if (op.result <= 0) return;
  auto left = static_cast<std::size_t>(op.result);
  if (op.kind == verb::read || op.kind == verb::recv) {
    valgrind::kernel_wrote(op.buffer, left);
  } else if (op.kind == verb::readv) {
    for (const iovec* each = op.vectors; left > 0; ++each) {
      const std::size_t part = std::min(left, each->iov_len);
      valgrind::kernel_wrote(each->iov_base, part);
      left -= part;
    }
  } else if (op.kind == verb::accept && op.address != nullptr) {
    valgrind::kernel_wrote(op.address, *op.address_length);
  }
}

}  // namespace

[[gnu::always_inline]] inline bool thread_state::hand_over(pending_operation& pending) noexcept {
  pending.op->owner = &pending;
  if (kernel_->submit(*pending.op)) return false;
  submitted_since_poll_ = true;
  operations_.add(pending);
  pend(*running_);
  return true;
}

bool thread_state::begin(pending_operation& pending) noexcept {
  return hand_over(pending);
}

void thread_state::call_off(pending_operation& pending) noexcept {
  kernel_->cancel(*pending.op);
  park_until_over(pending.wait);
}

void thread_state::park_until_over(wait_record& wait) noexcept {
  wait.reopen();
  wait.interruptible = false;
  wait.cancelling = true;
  ++pending_[0];  // it will come, a transient fiber's too
  park(wait);
  --pending_[0];
}

std::int32_t thread_state::perform(operation& op, const char* what) noexcept {
  if (being_closed(op.fd)) return -EBADF;
  pending_operation pending(op, what);
  if (calls_elsewhere_ > 0 && op.at_position() && called_elsewhere(op.fd)) [[unlikely]]
    return perform_elsewhere(pending);
  if (!hand_over(pending)) {
    if (op.result == operation::would_block_thread) [[unlikely]]
      return perform_elsewhere(pending);
    give_way();
    return op.result;
  }
  const bool interrupted = park(pending.wait) == wake_reason::interrupted;
  if (!pending.done) call_off(pending);
  if (op.result == operation::would_block_thread) [[unlikely]]
    return perform_elsewhere(pending);
  if ((interrupted || pending.closed) && means_cancelled(op.result)) {
    if (op.kind == verb::connect) take_back_connect(op.fd);
    return pending.closed ? -EBADF : -ECANCELED;
  }
  if constexpr (valgrind::sees_no_ring) account_for(op);
  return op.result;
}

/// What a thread has begun nobody can cancel: an interruption waits for it, and so does who closes
/// the descriptor. If there is no thread for it, this one is blocked.
std::int32_t thread_state::perform_elsewhere(pending_operation& pending) noexcept {
  operation& op = *pending.op;
  file_call call(op, pending.wait.what);
  if (offload_threads::submit(call) != 0) return call_and_block(op);
  const work_elsewhere meanwhile;
  pending.elsewhere = &call;
  pending.wait.fiber = running_;
  operations_.add(pending);
  ++calls_elsewhere_;
  call.await_end();
  --calls_elsewhere_;
  in_flight::remove(pending);
  if (pending.closer != nullptr) resume(*pending.closer, wake_reason::handed);
  return op.result == -ECANCELED && pending.closed ? -EBADF : op.result;
}

/// A file's position is under a lock: even a call that must not wait would wait for that.
bool thread_state::called_elsewhere(int fd) noexcept {
  auto* pending = operations_.find(fd);
  while (pending != nullptr && pending->elsewhere == nullptr)
    pending = operations_.find(fd, pending);
  return pending != nullptr;
}

void thread_state::complete(operation& op) noexcept {
  auto& pending = *static_cast<pending_operation*>(op.owner);
  in_flight::remove(pending);
  unpend(*pending.wait.fiber);
  pending.done = true;
  if (pending.won != nullptr) {
    pending.won(pending, *this);
  } else {
    resume(pending.wait, wake_reason::handed);
  }
  if (pending.closer != nullptr) resume(*pending.closer, wake_reason::handed);
}

bool thread_state::being_closed(int fd) noexcept {
  for (closing* each = closing_.front(); each != nullptr; each = closing_.next(*each)) {
    if (each->fd == fd) return true;
  }
  return false;
}

bool thread_state::end_operations(int fd) noexcept {
  if (being_closed(fd)) return false;
  closing mark(fd);
  closing_.push_back(mark);
  for (auto* pending = operations_.find(fd); pending != nullptr;
       pending = operations_.find(fd, pending)) {
    pending->closed = true;
    if (pending->elsewhere != nullptr) {
      pending->elsewhere->call_off();
    } else {
      kernel_->cancel(*pending->op);
    }
  }
  while (auto* pending = operations_.find(fd)) {
    wait_record wait("close of fd", fd);
    wait.interruptible = false;
    wait.whom = &pending->wait.fiber;
    pending->closer = &wait;
    park(wait);
  }
  mark.unlink();
  kernel_->forget(fd);
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
