// SPDX-License-Identifier: MIT
// open(2) of a FIFO waits for the other end, so another thread makes the call. Other files are
// opened in place.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdarg>
#include <motet/io/fd.hpp>
#include <new>
#include <string>
#include <utility>

#include "base/system_calls.hpp"
#include "posix/caller.hpp"
#include "posix/calls/plain_call.hpp"
#include "posix/functions.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// If its caller is interrupted, what it has opened is closed with it.
struct fifo_call {
  void operator()() noexcept {
    opened = fd(sys::openat(directory ? directory.get() : AT_FDCWD, path.c_str(), flags));
    error = errno;
  }
  fd directory;
  std::string path;
  int flags = 0;
  fd opened;
  int error = 0;
};

/// Whether opening may wait: a FIFO that is not opened in both directions.
bool waits_for_other_end(int directory, const char* path, int flags) noexcept {
  constexpr int never_waits = O_NONBLOCK | O_PATH | O_DIRECTORY;
  if ((flags & never_waits) != 0 || (flags & O_ACCMODE) == O_RDWR) return false;
  const int error = errno;
  struct stat status{};
  const bool is_fifo = ::fstatat(directory, path, &status, 0) == 0 && S_ISFIFO(status.st_mode);
  errno = error;
  return is_fifo;
}

int open_fifo(thread_state& home, int directory, const char* path, int flags) {
  fifo_call call;
  call.path = path;
  call.flags = flags & ~(O_CREAT | O_TRUNC);
  if (directory != AT_FDCWD && path[0] != '/') {
    call.directory = fd(sys::fcntl(directory, F_DUPFD_CLOEXEC, 0));
    if (!call.directory) return -1;
  }
  const auto ended =
      plain_call<fifo_call>::make(home, offload_pool::calls, on_signal::restart, std::move(call));
  if (ended == nullptr) return -1;
  fifo_call& outcome = ended->call();
  return outcome.opened ? outcome.opened.release() : fail(outcome.error);
}

int open_at(int directory, const char* path, int flags, mode_t mode) noexcept {
  const fiber_call call;
  if (!call || path == nullptr || !waits_for_other_end(directory, path, flags) || !call.may_wait())
    return libc.openat64(directory, path, flags, mode);
  try {
    return call.result(open_fifo(call.home(), directory, path, flags));
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM);
  }
}

/// Only files that are made have a mode.
constexpr bool has_mode(int flags) noexcept {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

mode_t mode_of(int flags, std::va_list arguments) noexcept {
  return has_mode(flags) ? va_arg(arguments, mode_t) : 0;
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat64(int directory, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(directory, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(directory, path, flags, mode);
}

int creat64(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

}  // extern "C"
