// SPDX-License-Identifier: MIT
// glibc's other names for functions of this library: those that a program compiled with
// _FORTIFY_SOURCE calls, and those that libraries call so that nobody defines them.
#include <fcntl.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the C library's names
extern "C" [[noreturn]] void __chk_fail();

namespace {

void check_size(std::size_t size, std::size_t capacity) {
  if (size > capacity) __chk_fail();
}

}  // namespace

extern "C" {

ssize_t __read(int fd, void* buffer, std::size_t size) {
  return ::read(fd, buffer, size);
}

ssize_t __write(int fd, const void* buffer, std::size_t size) {
  return ::write(fd, buffer, size);
}

ssize_t __send(int fd, const void* buffer, std::size_t size, int flags) {
  return ::send(fd, buffer, size, flags);
}

int __connect(int fd, const sockaddr* address, socklen_t length) {
  return ::connect(fd, address, length);
}

int __close(int fd) {
  return ::close(fd);
}

int __dup2(int fd, int target) {
  return ::dup2(fd, target);
}

int __poll(pollfd* entries, nfds_t count, int milliseconds) {
  return ::poll(entries, count, milliseconds);
}

int __select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* limit) {
  return ::select(count, read, write, except, limit);
}

int __nanosleep(const timespec* span, timespec* rest) {
  return ::nanosleep(span, rest);
}

pid_t __wait(int* status) {
  return ::wait(status);
}

pid_t __waitpid(pid_t process, int* status, int options) {
  return ::waitpid(process, status, options);
}

int fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return ::fcntl64(fd, command, argument);
}

/// A file that is made needs a mode, which these cannot be given.
int __openat64_2(int directory, const char* path, int flags) {
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) __chk_fail();
  return ::openat64(directory, path, flags);
}

int __openat_2(int directory, const char* path, int flags) {
  return __openat64_2(directory, path, flags);
}

int __open64_2(const char* path, int flags) {
  return __openat64_2(AT_FDCWD, path, flags);
}

int __open_2(const char* path, int flags) {
  return __openat64_2(AT_FDCWD, path, flags);
}

int __fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return ::fcntl64(fd, command, argument);
}

/// Offsets have 64 bits in any case.
int lockf(int fd, int command, off_t size) {
  return ::lockf64(fd, command, size);
}

ssize_t __read_chk(int fd, void* buffer, std::size_t size, std::size_t capacity) {
  check_size(size, capacity);
  return ::read(fd, buffer, size);
}

ssize_t __recv_chk(int fd, void* buffer, std::size_t size, std::size_t capacity, int flags) {
  check_size(size, capacity);
  return ::recv(fd, buffer, size, flags);
}

ssize_t __recvfrom_chk(int fd, void* buffer, std::size_t size, std::size_t capacity, int flags,
                       sockaddr* address, socklen_t* length) {
  check_size(size, capacity);
  return ::recvfrom(fd, buffer, size, flags, address, length);
}

int __poll_chk(pollfd* entries, nfds_t count, int milliseconds, std::size_t capacity) {
  check_size(count * sizeof *entries, capacity);
  return ::poll(entries, count, milliseconds);
}

int __ppoll_chk(pollfd* entries, nfds_t count, const timespec* limit, const sigset_t* mask,
                std::size_t capacity) {
  check_size(count * sizeof *entries, capacity);
  return ::ppoll(entries, count, limit, mask);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
