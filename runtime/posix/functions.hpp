// SPDX-License-Identifier: MIT
// The functions of the C library that motet-posix defines, in the order of docs/unmodified.md. The
// C library's own functions are found by the dynamic linker before the program's constructors run.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <resolv.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <motet/detail/base/abi.hpp>

/// Calls X(name) for each function that has one definition here; glibc's other names for them are
/// in aliases.cpp.
#define MOTET_POSIX_FUNCTIONS(X) \
  X(read)                        \
  X(readv)                       \
  X(write)                       \
  X(writev)                      \
  X(recv)                        \
  X(recvfrom)                    \
  X(recvmsg)                     \
  X(recvmmsg)                    \
  X(send)                        \
  X(sendto)                      \
  X(sendmsg)                     \
  X(sendmmsg)                    \
  X(connect)                     \
  X(accept4)                     \
  X(poll)                        \
  X(ppoll)                       \
  X(select)                      \
  X(pselect)                     \
  X(epoll_wait)                  \
  X(epoll_pwait)                 \
  X(epoll_pwait2)                \
  X(sleep)                       \
  X(usleep)                      \
  X(nanosleep)                   \
  X(clock_nanosleep)             \
  X(thrd_sleep)                  \
  X(close)                       \
  X(dup2)                        \
  X(dup3)                        \
  X(getaddrinfo)                 \
  X(getnameinfo)                 \
  X(wait4)                       \
  X(waitid)                      \
  X(flock)                       \
  X(fcntl64)                     \
  X(lockf64)                     \
  X(pthread_join)                \
  X(pthread_clockjoin_np)        \
  X(getpwnam)                    \
  X(getpwuid)                    \
  X(getpwnam_r)                  \
  X(getpwuid_r)                  \
  X(getgrnam)                    \
  X(getgrgid)                    \
  X(getgrnam_r)                  \
  X(getgrgid_r)                  \
  X(getgrouplist)                \
  X(initgroups)                  \
  X(getservbyname)               \
  X(getservbyport)               \
  X(getservbyname_r)             \
  X(getservbyport_r)             \
  X(gethostbyname)               \
  X(gethostbyname2)              \
  X(gethostbyaddr)               \
  X(gethostbyname_r)             \
  X(gethostbyname2_r)            \
  X(gethostbyaddr_r)             \
  X(sem_wait)                    \
  X(sem_clockwait)               \
  X(system)                      \
  X(openat64)                    \
  X(sigtimedwait)                \
  X(sigwait)                     \
  X(pause)                       \
  X(sigsuspend)                  \
  X(sigaction)                   \
  X(sendfile64)                  \
  X(splice)                      \
  X(tee)                         \
  X(mq_receive)                  \
  X(mq_timedreceive)             \
  X(mq_send)                     \
  X(mq_timedsend)                \
  X(mq_close)                    \
  X(msgsnd)                      \
  X(msgrcv)                      \
  X(semtimedop)                  \
  X(res_query)                   \
  X(res_search)                  \
  X(res_querydomain)             \
  X(res_send)                    \
  X(res_nquery)                  \
  X(res_nsearch)                 \
  X(res_nquerydomain)            \
  X(res_nsend)                   \
  X(pclose)

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The C library's functions.
struct c_library {
#define MOTET_POSIX_POINTER(name) decltype(&::name) name;  // NOLINT(bugprone-macro-parentheses)
  MOTET_POSIX_FUNCTIONS(MOTET_POSIX_POINTER)
#undef MOTET_POSIX_POINTER
};

/// Whether MOTET_POSIX=off is set: all calls are the C library's.
[[gnu::visibility("hidden")]] extern constinit bool is_switched_off;

/// Whether the constructor that finds the C library's functions has run.
[[gnu::visibility("hidden")]] extern constinit bool is_resolved;

/// Until resolve() has found a function, its pointer leads to one that makes the system call, or
/// calls resolve().
[[gnu::visibility("hidden")]] extern constinit c_library libc;

}}}  // namespace motet::MOTET_ABI::detail
