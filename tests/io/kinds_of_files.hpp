// SPDX-License-Identifier: MIT
// Descriptors of all kinds that are no sockets, made without a word to motet, and by a process that
// ends soon: nothing is closed of what a descriptor needs beside itself.
#pragma once

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sockets.hpp"

namespace testing {

/// A kind of descriptors. make() returns a negative number where the kernel, or a sandbox, has none
/// of this kind, and `minus_one` for -1 itself.
struct kind {
  std::string_view name;
  std::function<int()> make;
};

inline constexpr int minus_one = -1'000'000;

inline int file_with(int flags, std::string_view text = "some text") {
  std::string name = std::filesystem::temp_directory_path() / "motet-kinds-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  const bool written = ::write(fd, text.data(), text.size()) >= 0;
  const int file = ::open(name.c_str(), flags | O_CLOEXEC);
  ::unlink(name.c_str());
  return written ? file : -1;
}

/// Returns: the end to read from (0) or to write to (1) of a new pipe.
inline int pipe_end(int index, int flags, bool keeps_other, std::string_view text = {}) {
  int ends[2];
  if (::pipe2(ends, flags | O_CLOEXEC) != 0) return -1;
  if (!text.empty() && ::write(ends[1], text.data(), text.size()) < 0) return -1;
  if (!keeps_other) ::close(ends[1 - index]);
  return ends[index];
}

inline int full_pipe(int flags) {
  const int fd = pipe_end(1, flags, true);
  fill(fd);
  return fd;
}

inline int fifo() {
  std::string directory = std::filesystem::temp_directory_path() / "motet-kinds-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return -1;
  const std::string name = directory + "/fifo";
  const int fd = ::mkfifo(name.c_str(), 0600) == 0 ? ::open(name.c_str(), O_RDWR) : -1;
  ::unlink(name.c_str());
  ::rmdir(directory.c_str());
  return fd;
}

struct terminal {
  int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  int slave = -1;
  terminal() {
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) return;
    slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios raw{};
    ::tcgetattr(slave, &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(slave, TCSANOW, &raw);
  }
};

inline int timer(bool armed) {
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const itimerspec at_once{{}, {0, 1}};
  if (armed) ::timerfd_settime(fd, 0, &at_once, nullptr);
  ::usleep(100);
  return fd;
}

inline int signals(bool pending) {
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  if (pending) ::raise(SIGUSR2);
  return ::signalfd(-1, &mask, SFD_CLOEXEC);
}

inline int child(bool ends) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!ends) ::alarm(2);
    while (!ends) ::pause();
    ::_exit(0);
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (ends) ready_now(pidfd, POLLIN);
  if (ends) ::usleep(1000);
  return pidfd;
}

inline int memory(int seals) {
  const int fd = ::memfd_create("kinds", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (::write(fd, "some text", 9) != 9) return -1;
  if (seals != 0) ::fcntl(fd, F_ADD_SEALS, seals);
  return fd;
}

inline int ring() {
  io_uring_params params{};
  return static_cast<int>(::syscall(SYS_io_uring_setup, 4, &params));
}

inline const std::vector<kind> kinds_of_files = {
    {"file to read", [] { return file_with(O_RDONLY); }},
    {"file to write", [] { return file_with(O_WRONLY); }},
    {"file to read and write", [] { return file_with(O_RDWR); }},
    {"file to append to", [] { return file_with(O_RDWR | O_APPEND); }},
    {"empty file", [] { return file_with(O_RDWR, ""); }},
    {"file, O_DIRECT", [] { return file_with(O_RDWR | O_DIRECT); }},
    {"file, O_PATH", [] { return file_with(O_PATH); }},
    {"file, O_NONBLOCK", [] { return file_with(O_RDWR | O_NONBLOCK); }},
    {"file in memory", [] { return memory(0); }},
    {"file in memory, sealed", [] { return memory(F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK); }},
    {"directory", [] { return ::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }},
    {"directory, O_PATH", [] { return ::open("/tmp", O_PATH | O_CLOEXEC); }},
    {"/proc/self/status", [] { return ::open("/proc/self/status", O_RDONLY | O_CLOEXEC); }},
    {"/proc/self/mem", [] { return ::open("/proc/self/mem", O_RDWR | O_CLOEXEC); }},
    {"/dev/null", [] { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }},
    {"/dev/zero", [] { return ::open("/dev/zero", O_RDWR | O_CLOEXEC); }},
    {"/dev/full", [] { return ::open("/dev/full", O_RDWR | O_CLOEXEC); }},
    {"/dev/urandom", [] { return ::open("/dev/urandom", O_RDONLY | O_CLOEXEC); }},
    {"pipe to read, empty", [] { return pipe_end(0, 0, true); }},
    {"pipe to read, empty, O_NONBLOCK", [] { return pipe_end(0, O_NONBLOCK, true); }},
    {"pipe to read, with bytes", [] { return pipe_end(0, 0, true, "bytes"); }},
    {"pipe to read, closed", [] { return pipe_end(0, 0, false); }},
    {"pipe to read, closed, with bytes", [] { return pipe_end(0, 0, false, "bytes"); }},
    {"pipe to read, packets", [] { return pipe_end(0, O_DIRECT, true, "packet"); }},
    {"pipe to write", [] { return pipe_end(1, 0, true); }},
    {"pipe to write, full", [] { return full_pipe(0); }},
    {"pipe to write, full, O_NONBLOCK", [] { return full_pipe(O_NONBLOCK); }},
    {"pipe to write, closed", [] { return pipe_end(1, 0, false); }},
    {"pipe to write, closed, O_NONBLOCK", [] { return pipe_end(1, O_NONBLOCK, false); }},
    {"FIFO", fifo},
    {"terminal, master", [] { return terminal().master; }},
    {"terminal, master, hung up",
     [] {
       const terminal ends;
       ::close(ends.slave);
       return ends.master;
     }},
    {"terminal, slave", [] { return terminal().slave; }},
    {"terminal, slave, with bytes",
     [] {
       const terminal ends;
       return ::write(ends.master, "abc", 3) == 3 ? ends.slave : -1;
     }},
    {"terminal, slave, hung up",
     [] {
       const terminal ends;
       ::close(ends.master);
       return ends.slave;
     }},
    {"eventfd", [] { return ::eventfd(0, EFD_CLOEXEC); }},
    {"eventfd, set", [] { return ::eventfd(1, EFD_CLOEXEC); }},
    {"eventfd, O_NONBLOCK", [] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }},
    {"timerfd", [] { return timer(false); }},
    {"timerfd, expired", [] { return timer(true); }},
    {"signalfd", [] { return signals(false); }},
    {"signalfd, with a signal", [] { return signals(true); }},
    {"inotify", [] { return ::inotify_init1(IN_CLOEXEC); }},
    {"epoll", [] { return ::epoll_create1(EPOLL_CLOEXEC); }},
    {"pidfd", [] { return child(false); }},
    {"pidfd, ended", [] { return child(true); }},
    {"userfaultfd", [] { return static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)); }},
    {"io_uring", ring},
    {"closed",
     [] {
       const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
       ::close(fd);
       return fd;
     }},
    {"a number above all", [] { return 1 << 30; }},
    {"-1", [] { return minus_one; }},
};

}  // namespace testing
