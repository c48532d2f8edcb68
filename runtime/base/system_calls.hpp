// SPDX-License-Identifier: MIT
// The system calls by which the library reads, writes, waits and closes. They are made directly,
// because a program may replace the functions of the C library, as motet-posix does, with ones that
// call the library. Sanitizers and the model checker must see the functions themselves.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// With the results of the C library's functions of these names.
namespace raw {

/// The kernel's own type of a signal mask is shorter than that of the C library.
/// Source: sigprocmask(2), "C library/kernel differences".
inline constexpr std::size_t mask_size = 8;

inline ssize_t read(int fd, void* buffer, std::size_t size) noexcept {
  return ::syscall(SYS_read, fd, buffer, size);
}

inline ssize_t write(int fd, const void* buffer, std::size_t size) noexcept {
  return ::syscall(SYS_write, fd, buffer, size);
}

inline ssize_t pread(int fd, void* buffer, std::size_t size, off_t offset) noexcept {
  return ::syscall(SYS_pread64, fd, buffer, size, offset);
}

inline ssize_t pwrite(int fd, const void* buffer, std::size_t size, off_t offset) noexcept {
  return ::syscall(SYS_pwrite64, fd, buffer, size, offset);
}

/// The kernel takes the offset in two halves, of which 64-bit processors use the first. A sandbox
/// may not know these calls; the C library then reports that it does not know the flags.
inline ssize_t preadv2(int fd, const iovec* vectors, int count, off_t offset, int flags) noexcept {
  const ssize_t size = ::syscall(SYS_preadv2, fd, vectors, count, offset, 0L, flags);
  if (size < 0 && errno == ENOSYS) errno = EOPNOTSUPP;
  return size;
}

inline ssize_t pwritev2(int fd, const iovec* vectors, int count, off_t offset, int flags) noexcept {
  const ssize_t size = ::syscall(SYS_pwritev2, fd, vectors, count, offset, 0L, flags);
  if (size < 0 && errno == ENOSYS) errno = EOPNOTSUPP;
  return size;
}

inline ssize_t recv(int fd, void* buffer, std::size_t size, int flags) noexcept {
  return ::syscall(SYS_recvfrom, fd, buffer, size, flags, nullptr, nullptr);
}

inline ssize_t send(int fd, const void* buffer, std::size_t size, int flags) noexcept {
  return ::syscall(SYS_sendto, fd, buffer, size, flags, nullptr, 0);
}

inline ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept {
  return ::syscall(SYS_recvmsg, fd, message, flags);
}

inline ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept {
  return ::syscall(SYS_sendmsg, fd, message, flags);
}

inline int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags,
                    timespec* limit) noexcept {
  return static_cast<int>(::syscall(SYS_recvmmsg, fd, messages, count, flags, limit));
}

inline int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept {
  return static_cast<int>(::syscall(SYS_sendmmsg, fd, messages, count, flags));
}

inline int connect(int fd, const sockaddr* address, socklen_t length) noexcept {
  return static_cast<int>(::syscall(SYS_connect, fd, address, length));
}

inline int accept4(int fd, sockaddr* address, socklen_t* length, int flags) noexcept {
  return static_cast<int>(::syscall(SYS_accept4, fd, address, length, flags));
}

inline int shutdown(int fd, int direction) noexcept {
  return static_cast<int>(::syscall(SYS_shutdown, fd, direction));
}

/// The kernel would write the remaining time to the limit itself.
inline int ppoll(pollfd* entries, nfds_t count, const timespec* limit,
                 const sigset_t* mask) noexcept {
  timespec rest = limit != nullptr ? *limit : timespec{};
  timespec* const time = limit != nullptr ? &rest : nullptr;
  return static_cast<int>(::syscall(SYS_ppoll, entries, count, time, mask, mask_size));
}

inline int poll(pollfd* entries, nfds_t count, int milliseconds) noexcept {
  const timespec limit{milliseconds / 1'000, milliseconds % 1'000 * 1'000'000L};
  return raw::ppoll(entries, count, milliseconds < 0 ? nullptr : &limit, nullptr);
}

inline int nanosleep(const timespec* span, timespec* rest) noexcept {
  return static_cast<int>(::syscall(SYS_nanosleep, span, rest));
}

inline int close(int fd) noexcept {
  return static_cast<int>(::syscall(SYS_close, fd));
}

/// Unlike dup3(2), dup2() accepts a descriptor as its own target.
inline int dup2(int fd, int target) noexcept {
  if (fd == target) return ::syscall(SYS_fcntl, fd, F_GETFD) < 0 ? -1 : fd;
  return static_cast<int>(::syscall(SYS_dup3, fd, target, 0));
}

inline int fcntl(int fd, int command, int argument = 0) noexcept {
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}

inline int flock(int fd, int operation) noexcept {
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

inline int openat(int directory, const char* path, int flags, mode_t mode = 0) noexcept {
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}

inline int open(const char* path, int flags, mode_t mode = 0) noexcept {
  return raw::openat(AT_FDCWD, path, flags, mode);
}

inline ssize_t sendfile(int target, int source, off_t* offset, std::size_t size) noexcept {
  return ::syscall(SYS_sendfile, target, source, offset, size);
}

inline ssize_t splice(int source, off64_t* source_offset, int target, off64_t* target_offset,
                      std::size_t size, unsigned flags) noexcept {
  return ::syscall(SYS_splice, source, source_offset, target, target_offset, size, flags);
}

inline ssize_t tee(int source, int target, std::size_t size, unsigned flags) noexcept {
  return ::syscall(SYS_tee, source, target, size, flags);
}

inline ssize_t copy_file_range(int source, off64_t* source_offset, int target,
                               off64_t* target_offset, std::size_t size, unsigned flags) noexcept {
  return ::syscall(SYS_copy_file_range, source, source_offset, target, target_offset, size, flags);
}

inline int waitid(idtype_t type, id_t number, siginfo_t* info, int options) noexcept {
  return static_cast<int>(::syscall(SYS_waitid, type, number, info, options, nullptr));
}

inline pid_t waitpid(pid_t process, int* status, int options) noexcept {
  return static_cast<pid_t>(::syscall(SYS_wait4, process, status, options, nullptr));
}

inline int sigtimedwait(const sigset_t* signals, siginfo_t* info, const timespec* limit) noexcept {
  return static_cast<int>(::syscall(SYS_rt_sigtimedwait, signals, info, limit, mask_size));
}

}  // namespace raw

namespace sys {

#if defined(MOTET_ASAN) || defined(MOTET_TSAN)

/// How many of its own calls the thread is in.
[[gnu::visibility("default")]] inline thread_local unsigned own_calls = 0;

/// A function of the C library as the sanitizer has it, which may call that of motet-posix in turn.
template <auto function>
struct own_call {
  template <typename... Arguments>
  auto operator()(Arguments... arguments) const noexcept {
    struct mark {
      mark() noexcept { ++own_calls; }
      ~mark() { --own_calls; }
    };
    const mark noted;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // other builds see the arguments themselves
    return function(arguments...);
#pragma GCC diagnostic pop
  }
};

/// Whether the thread is in a call of the library's own.
inline bool is_own_call() noexcept {
  return own_calls > 0;
}

#define MOTET_SYSTEM_CALL(name) inline constexpr own_call<&::name> name{};

#else

constexpr bool is_own_call() noexcept {
  return false;
}

#ifdef MOTET_EXPLORED
#define MOTET_SYSTEM_CALL(name) using ::name;
#else
#define MOTET_SYSTEM_CALL(name) using raw::name;
#endif

#endif

MOTET_SYSTEM_CALL(accept4)
MOTET_SYSTEM_CALL(close)
MOTET_SYSTEM_CALL(connect)
MOTET_SYSTEM_CALL(copy_file_range)
MOTET_SYSTEM_CALL(dup2)
MOTET_SYSTEM_CALL(fcntl)
MOTET_SYSTEM_CALL(flock)
MOTET_SYSTEM_CALL(nanosleep)
MOTET_SYSTEM_CALL(open)
MOTET_SYSTEM_CALL(openat)
MOTET_SYSTEM_CALL(poll)
MOTET_SYSTEM_CALL(ppoll)
MOTET_SYSTEM_CALL(pread)
MOTET_SYSTEM_CALL(preadv2)
MOTET_SYSTEM_CALL(pwrite)
MOTET_SYSTEM_CALL(pwritev2)
MOTET_SYSTEM_CALL(read)
MOTET_SYSTEM_CALL(recv)
MOTET_SYSTEM_CALL(recvmmsg)
MOTET_SYSTEM_CALL(recvmsg)
MOTET_SYSTEM_CALL(send)
MOTET_SYSTEM_CALL(sendfile)
MOTET_SYSTEM_CALL(sendmmsg)
MOTET_SYSTEM_CALL(sendmsg)
MOTET_SYSTEM_CALL(shutdown)
MOTET_SYSTEM_CALL(sigtimedwait)
MOTET_SYSTEM_CALL(splice)
MOTET_SYSTEM_CALL(tee)
MOTET_SYSTEM_CALL(waitid)
MOTET_SYSTEM_CALL(waitpid)
MOTET_SYSTEM_CALL(write)
#undef MOTET_SYSTEM_CALL

/// Sleeps for the whole span, through signals.
inline void sleep_for(std::chrono::nanoseconds span) noexcept {
  const auto whole = std::chrono::floor<std::chrono::seconds>(span);
  timespec rest{whole.count(), (span - whole).count()};
  while (span.count() > 0 && sys::nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
}

}  // namespace sys

}}}  // namespace motet::MOTET_ABI::detail
