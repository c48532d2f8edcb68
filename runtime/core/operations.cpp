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
#include "core/time/park_until.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/valgrind.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A disk read in a kernel worker that was cancelled may tell so in the kernel's own words.
constexpr std::int32_t erestartsys = 512;

bool means_cancelled(std::int32_t result) {
  return result == -ECANCELED || result == -EINTR || result == -erestartsys;
}

void account_for(const iovec* vectors, std::size_t size) noexcept {
  for (const iovec* vector = vectors; size > 0; ++vector) {
    const std::size_t part = std::min(size, vector->iov_len);
    valgrind::kernel_wrote(vector->iov_base, part);
    size -= part;
  }
}

/// Says which memory a ring has filled.
[[gnu::cold, gnu::noinline]] void account_for(const operation& op) noexcept {
  const verb_row& row = row_of(op.kind);
  if (op.result < 0 || !row.fills) return;
  const auto size = static_cast<std::size_t>(op.result);
  if (row.carries == payload::buffer) {
    valgrind::kernel_wrote(op.buffer, size);
  } else if (row.carries == payload::vectors) {
    account_for(op.vectors, size);
  } else if (row.carries == payload::message) {
    account_for(op.message->msg_iov, size);
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

[[gnu::always_inline]] inline bool operations::hand_over(pending_operation& request) noexcept {
  request.op->owner = &request;
  if (thread_.kernel().submit(*request.op)) return false;
  has_submitted_ = true;
  table_.add(request);
  if (thread_.counts.on()) [[unlikely]]
    thread_.counts.numbers().in_flight_of(*request.op).add(1);
  thread_.add_pending(thread_.running());
  return true;
}

bool operations::begin(pending_operation& request) noexcept {
  return hand_over(request);
}

void operations::cancel_and_wait(pending_operation& request) noexcept {
  thread_.kernel().cancel(*request.op);
  thread_.park_until_over(request.wait);
}

namespace {

/// Undoes the rest of a cancelled operation.
std::int32_t result_of_cancelled(const operation& op, bool closed) noexcept {
  if (auto* undo = row_of(op.kind).undo) undo(op.fd);
  return closed ? -EBADF : -ECANCELED;
}

}  // namespace

/// A fiber that calls again and again must not keep the one that closes the descriptor waiting.
std::int32_t operations::refuse_closing() noexcept {
  if (thread_.may_switch()) thread_.snooze();
  return -EBADF;
}

std::int32_t operations::perform(operation& op, const char* description) noexcept {
  if (being_closed(op.fd)) [[unlikely]]
    return refuse_closing();
  pending_operation request(op, description);
  if (on_threads_ > 0 && at_position(op) && any_on_thread(op.fd)) [[unlikely]]
    return perform_on_thread(request);
  if (!hand_over(request)) {
    if (op.result == operation::would_block_thread) [[unlikely]]
      return perform_on_thread(request);
    thread_.yield_after_budget();
    return op.result;
  }
  const bool interrupted = thread_.park(request.wait) == wake_reason::interrupted;
  if (!request.done) cancel_and_wait(request);
  if (op.result == operation::would_block_thread) [[unlikely]]
    return perform_on_thread(request);
  if ((interrupted || request.closed) && means_cancelled(op.result)) {
    return result_of_cancelled(op, request.closed);
  }
  if (memory_is_checked_) [[unlikely]]
    account_for(op);
  return op.result;
}

/// What an operation that was given up at `due` has done by itself goes on: a connection attempt,
/// as with SO_SNDTIMEO.
std::int32_t operations::perform_until(operation& op, const char* description,
                                       clock::time_point due) noexcept {
  if (due == clock::time_point::max()) return perform(op, description);
  if (being_closed(op.fd)) [[unlikely]]
    return refuse_closing();
  pending_operation request(op, description);
  if (!hand_over(request)) {
    thread_.yield_after_budget();
    return op.result;
  }
  const wake_reason reason = park_until(thread_, request.wait, due);
  if (!request.done) cancel_and_wait(request);
  const bool given_up = reason != wake_reason::handed || request.closed;
  if (!given_up || !means_cancelled(op.result)) return op.result;
  if (reason == wake_reason::time && !request.closed) return -ETIME;
  return result_of_cancelled(op, request.closed);
}

/// A call that a plain thread has begun cannot be cancelled: an interruption waits for its end, and
/// so does a fiber that closes the descriptor. If no such thread can be had, the call blocks this
/// one.
std::int32_t operations::perform_on_thread(pending_operation& request) noexcept {
  operation& op = *request.op;
  file_call call(op, request.wait.description);
  if (blocking_pool::submit(call) != 0) return call_and_block(op);
  const remote_work work;
  op.owner = &request;
  request.plain_call = &call;
  request.wait.fiber = &thread_.running();
  table_.add(request);
  if (thread_.counts.on()) thread_.counts.numbers().in_flight_of(op).add(1);
  ++on_threads_;
  call.await_end();
  --on_threads_;
  if (thread_.counts.on()) thread_.counts.numbers().in_flight_of(op).subtract(1);
  in_flight::remove(request);
  if (request.closer != nullptr) thread_.resume(*request.closer, wake_reason::handed);
  return op.result == -ECANCELED && request.closed ? -EBADF : op.result;
}

void operations::count_in_flight(thread_counters& counters) noexcept {
  table_.each([&](const pending_operation& entry) { counters.in_flight_of(*entry.op).add(1); });
}

/// The kernel locks a file's position: even a call that must not wait would wait for that lock.
bool operations::any_on_thread(int fd) noexcept {
  auto* request = table_.find(fd);
  while (request != nullptr && request->plain_call == nullptr) request = table_.find(fd, request);
  return request != nullptr;
}

void operations::complete(operation& op) noexcept {
  thread_state& thread = thread_;
  auto& request = *static_cast<pending_operation*>(op.owner);
  in_flight::remove(request);
  if (thread.counts.on()) [[unlikely]]
    thread.counts.numbers().in_flight_of(op).subtract(1);
  thread.remove_pending(*request.wait.fiber);
  request.done = true;
  if (request.won != nullptr) {
    request.won(request, thread);
  } else {
    thread.resume(request.wait, wake_reason::handed);
  }
  if (request.closer != nullptr) thread.resume(*request.closer, wake_reason::handed);
}

bool operations::being_closed(int fd) noexcept {
  for (closing* entry = closing_.front(); entry != nullptr; entry = closing_.next(*entry)) {
    if (entry->fd == fd) return true;
  }
  return false;
}

void operations::end_early(pending_operation& request) noexcept {
  request.closed = true;
  if (request.plain_call != nullptr) {
    request.plain_call->withdraw();
  } else {
    thread_.kernel().cancel(*request.op);
  }
}

/// Returns: the operation that must end with the use; null if it is not in the table because it has
///          not begun, or has ended.
pending_operation* operations::ended_with(const descriptor_use& use) noexcept {
  if (use.waits_for == nullptr || use.waits_for->owner == nullptr) return nullptr;
  auto* request = static_cast<pending_operation*>(use.waits_for->owner);
  return in_flight::has(*request) ? request : nullptr;
}

void operations::end_use(descriptor_use& use) noexcept {
  use.closed = true;
  if (pending_operation* request = ended_with(use)) end_early(*request);
}

/// Returns: an operation on another descriptor by which a plain thread uses `fd`, or null.
pending_operation* operations::plain_call_into(int fd) noexcept {
  use_list& uses = uses_of(fd);
  for (auto* use = uses.front(); use != nullptr; use = uses.next(*use)) {
    pending_operation* request = use->fd == fd ? ended_with(*use) : nullptr;
    if (request != nullptr && request->plain_call != nullptr) return request;
  }
  return nullptr;
}

/// A fiber that closes the other descriptor of the operation may wait already.
void operations::await_for_close(pending_operation& request, int fd) noexcept {
  if (request.closer != nullptr) return thread_.snooze();
  wait_record wait("close of fd", fd);
  wait.interruptible = false;
  wait.target = &request.wait.fiber;
  request.closer = &wait;
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
  for (auto* request = table_.find(fd); request != nullptr; request = table_.find(fd, request)) {
    end_early(*request);
  }
  while (auto* request = table_.find(fd)) await_for_close(*request, fd);
  while (auto* request = plain_call_into(fd)) await_for_close(*request, fd);
  mark.unlink();
  thread_.kernel().forget(fd);
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
