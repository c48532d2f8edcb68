// SPDX-License-Identifier: MIT
// close(2) and dup2(2): fibers of this thread that wait in calls on the descriptor get EBADF first,
// as when they are motet's own calls.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_calls.hpp"
#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// Returns: false if another fiber is about to close the descriptor.
bool end_calls_on(const fiber_call& call, int fd) noexcept {
  if (fd < 0 || !call.may_wait()) return true;
  return call.home().calls.end_all_on(fd);
}

/// Whether dup2(2) would fail, and leave `target` alone.
bool is_open(int fd) noexcept {
  return sys::fcntl(fd, F_GETFD) >= 0;
}

[[gnu::noinline]] int close_in_fiber(int fd) noexcept {
  const fiber_call call;
  return end_calls_on(call, fd) ? libc.close(fd) : fail(EBADF);
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int close(int fd) {
  if (outside_of_fibers()) [[likely]]
    return libc.close(fd);
  return close_in_fiber(fd);
}

int dup2(int fd, int target) noexcept {
  const fiber_call call;
  const bool closes = fd != target && is_open(fd);
  if (closes && !end_calls_on(call, target)) return fail(EBUSY);
  return libc.dup2(fd, target);
}

int dup3(int fd, int target, int flags) noexcept {
  const fiber_call call;
  const bool closes = fd != target && is_open(fd) && (flags & ~O_CLOEXEC) == 0;
  if (closes && !end_calls_on(call, target)) return fail(EBUSY);
  return libc.dup3(fd, target, flags);
}

}  // extern "C"
