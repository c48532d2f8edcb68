// SPDX-License-Identifier: MIT
// Message queues and semaphores of System V, which no descriptor announces. Source: svipc(7).
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/look.hpp"
#include "posix/pauses.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// Calls `attempt()`, which fails with `would_wait` where it would wait, until it does not, or
/// until `due`. A handler always ends such a call.
template <typename Attempt>
auto call_until(thread_state& home, clock::time_point due, int would_wait, Attempt attempt) noexcept
    -> decltype(attempt()) {
  using result_type = decltype(attempt());
  bool waited = false;
  const auto result = call_with_pauses(
      home, on_signal::fail,
      [&]() -> std::optional<result_type> {
        const result_type value = attempt();
        if (value < 0 && errno == EINVAL && waited) errno = EIDRM;
        if (value < 0 && errno == would_wait) waited = true;
        const bool is_late = due != no_limit && home.time.now() >= due;
        if (value >= 0 || errno != would_wait || is_late) return value;
        return std::nullopt;
      },
      due);
  return result.value_or(-1);
}

/// The kernel's own limit for operations in a call. Source: semop(2), SEMOPM.
using semaphore_operations = std::array<sembuf, 500>;

/// Whether some operations may wait and others not, which only the kernel can tell apart.
bool is_mixed(std::span<const sembuf> operations) noexcept {
  return std::any_of(operations.begin(), operations.end(),
                     [](const sembuf& operation) { return (operation.sem_flg & IPC_NOWAIT) != 0; });
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int msgsnd(int id, const void* message, std::size_t size, int flags) {
  const fiber_call call;
  if ((flags & IPC_NOWAIT) != 0 || !call.may_wait()) return libc.msgsnd(id, message, size, flags);
  return call.result(call_until(call.home(), no_limit, EAGAIN, [&] {
    return libc.msgsnd(id, message, size, flags | IPC_NOWAIT);
  }));
}

ssize_t msgrcv(int id, void* message, std::size_t size, long type, int flags) {
  const fiber_call call;
  if ((flags & (IPC_NOWAIT | MSG_COPY)) != 0 || !call.may_wait())
    return libc.msgrcv(id, message, size, type, flags);
  return call.result(call_until(call.home(), no_limit, ENOMSG, [&] {
    return libc.msgrcv(id, message, size, type, flags | IPC_NOWAIT);
  }));
}

int semtimedop(int id, sembuf* operations, std::size_t count, const timespec* limit) noexcept {
  const fiber_call call;
  semaphore_operations attempts;
  const bool is_usual =
      count <= attempts.size() && operations != nullptr && (limit == nullptr || is_valid(*limit));
  if (!is_usual || is_mixed({operations, count}) || !call.may_wait())
    return libc.semtimedop(id, operations, count, limit);
  std::transform(operations, operations + count, attempts.begin(), [](sembuf attempt) {
    attempt.sem_flg = static_cast<short>(attempt.sem_flg | IPC_NOWAIT);
    return attempt;
  });
  return call.result(call_until(call.home(), due_after(call.home(), limit), EAGAIN, [&] {
    return libc.semtimedop(id, attempts.data(), count, nullptr);
  }));
}

int semop(int id, sembuf* operations, std::size_t count) noexcept {
  return ::semtimedop(id, operations, count, nullptr);
}

}  // extern "C"
