// SPDX-License-Identifier: MIT
// See observe/stalls/blocked_call.hpp.
#include "observe/stalls/blocked_call.hpp"

#include <sys/syscall.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// How the first argument of a call is told.
enum class first : std::uint8_t { nothing, descriptor };

struct row {
  long number;
  const char* name;
  first argument;
};

/// The calls that a program blocks in most. A number has the same name on every processor, but not
/// every processor has each call.
constexpr row rows[] = {
    {SYS_read, "read", first::descriptor},
    {SYS_write, "write", first::descriptor},
    {SYS_readv, "readv", first::descriptor},
    {SYS_writev, "writev", first::descriptor},
    {SYS_pread64, "pread", first::descriptor},
    {SYS_pwrite64, "pwrite", first::descriptor},
    {SYS_fsync, "fsync", first::descriptor},
    {SYS_fdatasync, "fdatasync", first::descriptor},
    {SYS_ftruncate, "ftruncate", first::descriptor},
    {SYS_flock, "flock", first::descriptor},
    {SYS_fcntl, "fcntl", first::descriptor},
    {SYS_ioctl, "ioctl", first::descriptor},
    {SYS_close, "close", first::descriptor},
    {SYS_getdents64, "getdents", first::descriptor},
    {SYS_recvfrom, "recv", first::descriptor},
    {SYS_recvmsg, "recvmsg", first::descriptor},
    {SYS_sendto, "send", first::descriptor},
    {SYS_sendmsg, "sendmsg", first::descriptor},
    {SYS_accept, "accept", first::descriptor},
    {SYS_accept4, "accept", first::descriptor},
    {SYS_connect, "connect", first::descriptor},
    {SYS_epoll_pwait, "epoll_wait", first::descriptor},
    {SYS_ppoll, "poll", first::nothing},
    {SYS_pselect6, "select", first::nothing},
    {SYS_futex, "futex", first::nothing},
    {SYS_nanosleep, "nanosleep", first::nothing},
    {SYS_clock_nanosleep, "clock_nanosleep", first::nothing},
    {SYS_openat, "openat", first::nothing},
    {SYS_wait4, "wait4", first::nothing},
    {SYS_waitid, "waitid", first::nothing},
    {SYS_io_uring_enter, "io_uring_enter", first::descriptor},
#if defined(__x86_64__)
    {SYS_open, "open", first::nothing},
    {SYS_poll, "poll", first::nothing},
    {SYS_select, "select", first::nothing},
    {SYS_epoll_wait, "epoll_wait", first::descriptor},
#endif
};

std::string text_of(long number, unsigned long argument) {
  for (const row& entry : rows) {
    if (entry.number != number) continue;
    if (number == SYS_futex) return "futex(), of a std:: lock, a join or the like";
    if (entry.argument == first::nothing) return std::string(entry.name) + "()";
    return std::string(entry.name) + "(fd " + std::to_string(static_cast<int>(argument)) + ")";
  }
  return "system call " + std::to_string(number);
}

}  // namespace

blocked_call blocked_call_of(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/syscall";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  std::array<char, 256> line{};
  blocked_call result;
  if (file == nullptr || std::fgets(line.data(), line.size(), file.get()) == nullptr) return result;
  if (std::string_view(line.data()).starts_with("running")) {
    result.is = blocked_call::state::running;
    return result;
  }
  long number = -1;
  unsigned long argument = 0;
  // A thread that is blocked elsewhere than in a call has the number -1 and no arguments.
  const int fields = std::sscanf(line.data(), "%ld %lx %*x %*x %*x %*x %*x %lx %lx", &number,
                                 &argument, &result.stack_pointer, &result.instruction);
  if (fields != 4 || number < 0) return result;
  result.is = blocked_call::state::in_call;
  result.text = text_of(number, argument);
  return result;
}

}}}  // namespace motet::MOTET_ABI::detail
