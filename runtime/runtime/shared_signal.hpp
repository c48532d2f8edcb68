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

#include "base/own_handler.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace shared_signal {

using handler = void (*)(int signal, siginfo_t* info, void* context);

inline bool has_handler(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/// Installs `new_handler` with the mask that the program had chosen, and calls end early only if
/// the program wanted that. `old_action` is written before `new_handler` can run.
/// Throws: std::system_error.
inline void install(int signal, handler new_handler, struct sigaction& old_action) {
  if (::sigaction(signal, nullptr, &old_action) != 0) throw_errno(errno, "sigaction");
  struct sigaction action{};
  action.sa_sigaction = new_handler;
  action.sa_mask = old_action.sa_mask;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK |
                    (has_handler(old_action) ? old_action.sa_flags & SA_RESTART : SA_RESTART);
  if (install_own(signal, &action, nullptr) != 0) throw_errno(errno, "sigaction");
}

/// In a handler: calls the program's, if there is one.
inline void call(const struct sigaction& old_action, int signal, siginfo_t* info,
                 void* context) noexcept {
  if (!has_handler(old_action)) return;
  if ((old_action.sa_flags & SA_SIGINFO) != 0) {
    old_action.sa_sigaction(signal, info, context);
  } else {
    old_action.sa_handler(signal);
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
