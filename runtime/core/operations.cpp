// SPDX-License-Identifier: MIT
// An operation from its submission to its end. The kernel may write to its buffer until then, so an
// interruption asks for cancellation and goes on waiting; what was too late to cancel is returned
// as if nothing had been asked, and the interruption waits for the next switchpoint.
#include "core/operations.hpp"

#include <algorithm>
#include <cerrno>

#include "base/remote_work.hpp"
#include "base/verb_table.hpp"
#include "core/file_call.hpp"
#include "core/thread_state.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/valgrind.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A disk read in a kernel worker that was cancelled may tell so in the kernel's own words.
constexpr std::int32_t erestartsys = 512;

bool means_cancelled(std::int32_t result) {
  return result == -ECANCELED || result == -EINTR || result == -erestartsys;
}

void account_for(const iovec* vectors, std::size_t filled) noexcept {
  for (const iovec* each = vectors; filled > 0; ++each) {
    const std::size_t part = std::min(filled, each->iov_len);
    valgrind::kernel_wrote(each->iov_base, part);
    filled -= part;
  }
}

/// Says which memory a ring has filled.
[[gnu::cold, gnu::noinline]] void account_for(const operation& op) noexcept {
  const verb_row& row = row_of(op.kind);
  if (op.result < 0 || !row.fills) return;
  const auto filled = static_cast<std::size_t>(op.result);
  if (row.carries == payload::buffer) {
    valgrind::kernel_wrote(op.buffer, filled);
  } else if (row.carries == payload::vectors) {
    account_for(op.vectors, filled);
  } else if (row.carries == payload::message) {
    account_for(op.message->msg_iov, filled);
    valgrind::kernel_wrote(op.message->msg_name, op.message->msg_namelen);
    valgrind::kernel_wrote(op.message->msg_control, op.message->msg_controllen);
    valgrind::kernel_wrote(op.message, sizeof *op.message);
  } else if (row.carries == payload::peer && op.address != nullptr) {
    valgrind::kernel_wrote(op.address, *op.address_length);
  } else if (row.carries == payload::path_and_status) {
    valgrind::kernel_wrote(op.status, sizeof *op.status);
  }
}

}  // namespace

operations::operations(thread_state& thread) noexcept
    : thread_(thread), memory_is_checked_(valgrind::checks_memory()) {}

[[gnu::always_inline]] inline bool operations::hand_over(pending_operation& pending) noexcept {
  pending.op->owner = &pending;
  if (thread_.kernel().submit(*pending.op)) return false;
  submitted_ = true;
  table_.add(pending);
  if (thread_.counted.on()) [[unlikely]]
    thread_.counted.numbers().in_flight_of(*pending.op).add(1);
  thread_.add_pending(thread_.running());
  return true;
}

bool operations::begin(pending_operation& pending) noexcept {
  return hand_over(pending);
}

void operations::cancel_and_wait(pending_operation& pending) noexcept {
  thread_.kernel().cancel(*pending.op);
  thread_.park_until_over(pending.wait);
}

namespace {

/// Undoes the rest of a cancelled operation.
std::int32_t result_of_cancelled(const operation& op, bool closed) noexcept {
  if (auto* take_back = row_of(op.kind).take_back) take_back(op.fd);
  return closed ? -EBADF : -ECANCELED;
}

}  // namespace

std::int32_t operations::perform(operation& op, const char* what) noexcept {
  if (being_closed(op.fd)) return -EBADF;
  pending_operation pending(op, what);
  if (on_threads_ > 0 && at_position(op) && any_on_thread(op.fd)) [[unlikely]]
    return perform_on_thread(pending);
  if (!hand_over(pending)) {
    if (op.result == operation::would_block_thread) [[unlikely]]
      return perform_on_thread(pending);
    thread_.yield_after_budget();
    return op.result;
  }
  const bool interrupted = thread_.park(pending.wait) == wake_reason::interrupted;
  if (!pending.done) cancel_and_wait(pending);
  if (op.result == operation::would_block_thread) [[unlikely]]
    return perform_on_thread(pending);
  if ((interrupted || pending.closed) && means_cancelled(op.result)) {
    return result_of_cancelled(op, pending.closed);
  }
  if (memory_is_checked_) [[unlikely]]
    account_for(op);
  return op.result;
}

/// A call that a plain thread has begun cannot be cancelled: an interruption waits for its end, and
/// so does a fiber that closes the descriptor. If no such thread can be had, the call blocks this
/// one.
std::int32_t operations::perform_on_thread(pending_operation& pending) noexcept {
  operation& op = *pending.op;
  file_call call(op, pending.wait.what);
  if (blocking_pool::submit(call) != 0) return call_and_block(op);
  const remote_work meanwhile;
  op.owner = &pending;
  pending.plain_call = &call;
  pending.wait.fiber = &thread_.running();
  table_.add(pending);
  if (thread_.counted.on()) thread_.counted.numbers().in_flight_of(op).add(1);
  ++on_threads_;
  call.await_end();
  --on_threads_;
  if (thread_.counted.on()) thread_.counted.numbers().in_flight_of(op).subtract(1);
  in_flight::remove(pending);
  if (pending.closer != nullptr) thread_.resume(*pending.closer, wake_reason::handed);
  return op.result == -ECANCELED && pending.closed ? -EBADF : op.result;
}

void operations::count_in_flight(thread_counters& counters) noexcept {
  table_.each([&](const pending_operation& each) { counters.in_flight_of(*each.op).add(1); });
}

/// The kernel locks a file's position: even a call that must not wait would wait for that lock.
bool operations::any_on_thread(int fd) noexcept {
  auto* pending = table_.find(fd);
  while (pending != nullptr && pending->plain_call == nullptr) pending = table_.find(fd, pending);
  return pending != nullptr;
}

void operations::complete(operation& op) noexcept {
  thread_state& thread = thread_;
  auto& pending = *static_cast<pending_operation*>(op.owner);
  in_flight::remove(pending);
  if (thread.counted.on()) [[unlikely]]
    thread.counted.numbers().in_flight_of(op).subtract(1);
  thread.remove_pending(*pending.wait.fiber);
  pending.done = true;
  if (pending.won != nullptr) {
    pending.won(pending, thread);
  } else {
    thread.resume(pending.wait, wake_reason::handed);
  }
  if (pending.closer != nullptr) thread.resume(*pending.closer, wake_reason::handed);
}

bool operations::being_closed(int fd) noexcept {
  for (closing* each = closing_.front(); each != nullptr; each = closing_.next(*each)) {
    if (each->fd == fd) return true;
  }
  return false;
}

void operations::end_early(pending_operation& pending) noexcept {
  pending.closed = true;
  if (pending.plain_call != nullptr) {
    pending.plain_call->withdraw();
  } else {
    thread_.kernel().cancel(*pending.op);
  }
}

/// Returns: the operation that must end with the use; null if it is not in the table because it has
///          not begun, or has ended.
pending_operation* operations::ended_with(const descriptor_use& use) noexcept {
  if (use.waits_for == nullptr || use.waits_for->owner == nullptr) return nullptr;
  auto* pending = static_cast<pending_operation*>(use.waits_for->owner);
  return in_flight::has(*pending) ? pending : nullptr;
}

void operations::end_use(descriptor_use& use) noexcept {
  use.closed = true;
  if (pending_operation* pending = ended_with(use)) end_early(*pending);
}

/// Returns: an operation on another descriptor by which a plain thread uses `fd`, or null.
pending_operation* operations::plain_call_into(int fd) noexcept {
  use_list& uses = uses_of(fd);
  for (auto* use = uses.front(); use != nullptr; use = uses.next(*use)) {
    pending_operation* pending = use->fd == fd ? ended_with(*use) : nullptr;
    if (pending != nullptr && pending->plain_call != nullptr) return pending;
  }
  return nullptr;
}

/// A fiber that closes the other descriptor of the operation may wait already.
void operations::await_for_close(pending_operation& pending, int fd) noexcept {
  if (pending.closer != nullptr) return thread_.snooze();
  wait_record wait("close of fd", fd);
  wait.interruptible = false;
  wait.target = &pending.wait.fiber;
  pending.closer = &wait;
  thread_.park(wait);
}

bool operations::end_all_on(int fd) noexcept {
  if (being_closed(fd)) return false;
  closing mark(fd);
  closing_.push_back(mark);
  use_list& uses = uses_of(fd);
  for (auto* use = uses.front(); use != nullptr; use = uses.next(*use)) {
    if (use->fd == fd) end_use(*use);
  }
  for (auto* pending = table_.find(fd); pending != nullptr; pending = table_.find(fd, pending)) {
    end_early(*pending);
  }
  while (auto* pending = table_.find(fd)) await_for_close(*pending, fd);
  while (auto* pending = plain_call_into(fd)) await_for_close(*pending, fd);
  mark.unlink();
  thread_.kernel().forget(fd);
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
