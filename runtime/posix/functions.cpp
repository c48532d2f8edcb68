// SPDX-License-Identifier: MIT
// See posix/functions.hpp. A memory allocator may read a file before any constructor has run, and
// while dlsym(3) runs: so what allocators call makes the system call until then.
#include "posix/functions.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

#include "base/system_calls.hpp"
#include "posix/next_function.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

[[gnu::constructor(101)]] void resolve() noexcept {
#define MOTET_POSIX_FIND(name) find_next(libc.name, #name);
  MOTET_POSIX_FUNCTIONS(MOTET_POSIX_FIND)
#undef MOTET_POSIX_FIND
  is_switched_off = is_off_in_environment();
  is_resolved = true;
}

/// Allocators may make a descriptor close-on-exec.
int early_fcntl(int fd, int command, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}
/// They read files.
int early_openat(int directory, const char* path, int flags, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return raw::openat(directory, path, flags, mode);
}

consteval c_library stand_ins() {
  c_library early{};
#define MOTET_POSIX_STAND_IN(name) \
  early.name = stand_in<libc, &resolve, &c_library::name>(&c_library::name);
  MOTET_POSIX_FUNCTIONS(MOTET_POSIX_STAND_IN)
#undef MOTET_POSIX_STAND_IN
  early.read = &raw::read;
  early.write = &raw::write;
  early.close = &raw::close;
  early.poll = &raw::poll;
  early.nanosleep = &raw::nanosleep;
  early.fcntl64 = &early_fcntl;
  early.openat64 = &early_openat;
  return early;
}

}  // namespace

constinit c_library libc = stand_ins();
constinit bool is_switched_off = false;
constinit bool is_resolved = false;

}}}  // namespace motet::MOTET_ABI::detail
