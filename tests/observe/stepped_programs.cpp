// SPDX-License-Identifier: MIT
// A dump signal at each instruction of a switch, of a fiber's first and last steps, and of a throw.
// The program traces a child of its own: it lets the child make one step, has the signal delivered
// there, lets the handler run to its end, and goes on with the next step.
//
// usage: stepped_programs
// Source: ptrace(2).
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <motet/motet.hpp>
#include <string>

#include "support.hpp"

#if !defined(__x86_64__)
int main() {
  return 77;  // for Meson: it could not be tested here
}
#else
#include <sys/syscall.h>
#include <sys/user.h>

namespace {

constexpr int skipped = 77;
constexpr int dump_signal = SIGUSR1;

void snooze() {
  motet::snooze();
}

void live_and_die() {
  motet::spin({.name = "child"}, [] {}).await();
}

void fall_and_be_caught() {
  try {
    throw 1;
  } catch (int) {
    motet::snooze();
  }
}

struct path {
  const char* name;
  void (*take)();
  const char* doubt;  // told somewhere on the way
  /// Where the thread looks at its inbox, it answers the signals with a dump, which takes more
  /// steps than these and is not what this is about. It looks every 16 switches: so some rounds are
  /// whole.
  int most_steps;
  int rounds;
  std::size_t stride;  // between the instructions at which the signal is delivered
};
const path paths[] = {{"a switch", &snooze, "between two fibers", 500, 4, 1},
                      {"a fiber's life", &live_and_die, "between two fibers", 3'000, 3, 1},
                      {"a throw", &fall_and_be_caught, "on the way of an exception", 30'000, 3,
                       testing::scaled(1, 7)}};

void mark() {
  ::kill(::getpid(), SIGSTOP);
}

/// In the child: takes each path between two marks, when nothing is asked of the thread any more.
[[noreturn]] void walk(int fd) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(skipped);
  mark();
  ::dup2(fd, STDERR_FILENO);
  motet::options config;
  config.dump_signal = dump_signal;
  motet::run(config, [] {
    motet::group neighbours;
    neighbours.spin({.name = "other"}, [] {
      for (;;) motet::snooze();
    });
    for (const path& entry : paths) {
      for (int round = 0; round < entry.rounds; ++round) {
        entry.take();
        for (int i = 0; i < 40 + 3 * round; ++i) motet::snooze();
        mark();
        entry.take();
        mark();
      }
    }
    neighbours.cancel();
  });
  ::_exit(0);
}

class tracer {
 public:
  explicit tracer(pid_t child) : child_(child) {}

  /// Returns: the signal that has stopped the child, 0 if it is over.
  int await() {
    ::waitpid(child_, &status_, __WALL);
    return WIFSTOPPED(status_) ? WSTOPSIG(status_) & 0x7f : 0;
  }
  int go_on(__ptrace_request request, int signal = 0) {
    ::ptrace(request, child_, nullptr, signal);
    return await();
  }
  /// Has the signal delivered where the child is, and lets the handler run until it returns there.
  /// Returns: whether it has. The step before may have been the one to the next mark.
  bool interrupt() {
    int stop = go_on(PTRACE_SYSCALL, dump_signal);
    for (; stop == SIGTRAP || stop == SIGSTOP; stop = go_on(PTRACE_SYSCALL)) {
      marked_ = marked_ || stop == SIGSTOP;
      user_regs_struct registers{};
      ::ptrace(PTRACE_GETREGS, child_, nullptr, &registers);
      if (stop == SIGTRAP && registers.orig_rax == SYS_rt_sigreturn) {
        return go_on(PTRACE_SYSCALL) == SIGTRAP;
      }
    }
    return false;
  }
  /// Returns: in how many instructions it has come to the next mark; -1 if it ended before.
  int walk_with_signals(int most_steps, std::size_t stride) {
    marked_ = false;
    for (int steps = 0; steps < most_steps; ++steps) {
      const int stop = go_on(PTRACE_SINGLESTEP);
      if (stop == SIGSTOP) return steps;
      if (stop != SIGTRAP) return -1;
      if (static_cast<std::size_t>(steps) % stride == 0 && !interrupt()) return -1;
      if (marked_) return steps;
    }
    return go_on(PTRACE_CONT) == SIGSTOP ? most_steps : -1;
  }
  void say_how_it_ended() const {
    if (WIFSIGNALED(status_)) std::printf("the child died: %s\n", strsignal(WTERMSIG(status_)));
    if (WIFSTOPPED(status_)) std::printf("the child got: %s\n", strsignal(WSTOPSIG(status_)));
  }
  int status() const { return status_; }

 private:
  pid_t child_;
  int status_ = 0;
  bool marked_ = false;
};

std::string text_of(int file) {
  std::string text(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  if (::ftruncate(file, 0) != 0 || ::lseek(file, 0, SEEK_SET) != 0) std::abort();
  return text;
}

/// Returns: whether the child has survived each step, and told what it should.
bool trace(tracer& child, int fd) {
  for (const path& entry : paths) {
    int whole = 0;  // rounds that came to the second mark
    for (int round = 0; round < entry.rounds; ++round) {
      if (child.go_on(PTRACE_CONT) != SIGSTOP) return false;
      if (round == 0) text_of(fd);
      const int steps = child.walk_with_signals(entry.most_steps, entry.stride);
      if (steps < 0) return false;
      std::printf("%s: %d instructions\n", entry.name, steps);
      if (steps < entry.most_steps) ++whole;
    }
    if (whole == 0) {
      std::printf("%s never came to its end\n", entry.name);
      return false;
    }
    const std::string text = text_of(fd);
    for (const char* line : {entry.doubt, "it is at\n"}) {
      if (text.find(line) != std::string::npos) continue;
      std::printf("never told: %s\n", line);
      return false;
    }
  }
  return child.go_on(PTRACE_CONT) == 0 && child.status() == 0;
}

}  // namespace

int main() {
  const int fd = ::memfd_create("told", MFD_CLOEXEC);
  const pid_t number = ::fork();
  if (number == 0) walk(fd);
  tracer child(number);
  if (child.await() != SIGSTOP) {
    std::puts("skipped: ptrace is refused here");
    return skipped;
  }
  if (trace(child, fd)) return 0;
  child.say_how_it_ended();
  ::kill(number, SIGKILL);
  return 1;
}
#endif
