// SPDX-License-Identifier: MIT
// A signal that the library takes and the program may have taken before: the program's handler is
// called as well; and how one thread of the process sends such a signal to another.
// Source: sigaction(2), rt_tgsigqueueinfo(2).
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <motet/base/errors.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace shared_signal {

using handler = void (*)(int signal, siginfo_t* info, void* context);

inline bool has_handler(const struct sigaction& of) noexcept {
  return (of.sa_flags & SA_SIGINFO) != 0 || (of.sa_handler != SIG_DFL && of.sa_handler != SIG_IGN);
}

/// Installs `ours` with the mask that the program had chosen, and calls end early only if the
/// program wanted that. `before` is written before `ours` can run.
/// Throws: std::system_error.
inline void install(int signal, handler ours, struct sigaction& before) {
  if (::sigaction(signal, nullptr, &before) != 0) throw_errno(errno, "sigaction");
  struct sigaction action{};
  action.sa_sigaction = ours;
  action.sa_mask = before.sa_mask;
  action.sa_flags =
      SA_SIGINFO | SA_ONSTACK | (has_handler(before) ? before.sa_flags & SA_RESTART : SA_RESTART);
  if (::sigaction(signal, &action, nullptr) != 0) throw_errno(errno, "sigaction");
}

/// In a handler: calls the program's, if there is one.
inline void call(const struct sigaction& before, int signal, siginfo_t* info,
                 void* context) noexcept {
  if (!has_handler(before)) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
}

/// Sends a signal that carries `mark`. Returns: whether the kernel has taken it.
inline bool send(pid_t thread, int signal, void* mark) noexcept {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = mark;
  return ::syscall(SYS_rt_tgsigqueueinfo, info.si_pid, thread, signal, &info) == 0;
}

inline bool carries(const siginfo_t& info, const void* mark) noexcept {
  return info.si_code == SI_QUEUE && info.si_value.sival_ptr == mark;
}

}}}}  // namespace motet::MOTET_ABI::detail::shared_signal
