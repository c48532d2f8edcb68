// SPDX-License-Identifier: MIT
// flock(2), fcntl(2) and lockf(3): locks of files that another process or fiber holds.
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdarg>
#include <optional>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/pauses.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// Calls `try_lock()`, which fails with EAGAIN or EACCES while the lock is held, until it does not.
template <typename TryLock>
int lock_in_fiber(thread_state& home, int fd, TryLock try_lock) noexcept {
  descriptor_use use(fd);
  home.calls.note_use(use);
  const std::optional<int> result =
      call_with_pauses(home, on_signal::restart, [&]() -> std::optional<int> {
        if (use.closed) return fail(EBADF);
        const int locked = try_lock();
        const bool is_held = locked < 0 && (errno == EAGAIN || errno == EACCES);
        return is_held ? std::nullopt : std::optional(locked);
      });
  use.unlink();
  return result.value_or(-1);
}

/// Returns: the command that tries to get a lock instead of waiting for it; or `command`.
constexpr int without_wait(int command) noexcept {
  if (command == F_SETLKW) return F_SETLK;
  return command == F_OFD_SETLKW ? F_OFD_SETLK : command;
}

int control(int fd, int command, void* argument) noexcept {
  const int attempt = without_wait(command);
  if (attempt == command) return libc.fcntl64(fd, command, argument);
  const fiber_call call;
  if (!call.may_wait()) return libc.fcntl64(fd, command, argument);
  return lock_in_fiber(call.home(), fd, [&] { return libc.fcntl64(fd, attempt, argument); });
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int flock(int fd, int operation) noexcept {
  const fiber_call call;
  if ((operation & LOCK_NB) != 0 || !call.may_wait()) return libc.flock(fd, operation);
  return lock_in_fiber(call.home(), fd, [&] { return libc.flock(fd, operation | LOCK_NB); });
}

int fcntl64(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument);
}

int lockf64(int fd, int command, off64_t size) {
  const fiber_call call;
  if (command != F_LOCK || !call.may_wait()) return libc.lockf64(fd, command, size);
  return lock_in_fiber(call.home(), fd, [&] { return libc.lockf64(fd, F_TLOCK, size); });
}

}  // extern "C"
