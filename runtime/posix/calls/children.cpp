// SPDX-License-Identifier: MIT
// waitpid(2) and its relatives. The end of one process makes a pidfd readable; other events, and
// those of any child, are looked for.
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <motet/io/fd.hpp>
#include <optional>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/pauses.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// Returns: a descriptor that is readable when the process has ended, or none.
/// Source: pidfd_open(2).
fd end_of(pid_t process) noexcept {
  return process > 0 ? fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))) : fd();
}

/// Calls `attempt()`, which returns nothing while no child has the state that is waited for. `end`
/// is readable when one of them has ended.
template <typename Attempt>
pid_t wait_for_child(thread_state& home, const fd& end, Attempt attempt) noexcept {
  if (const std::optional<pid_t> result = attempt()) return *result;
  if (end) {
    const std::int32_t error = await_ready(home, end.get(), POLLIN, "waitpid", on_signal::restart);
    if (error != 0) return fail(-error);
  }
  return call_with_pauses(home, on_signal::restart, attempt).value_or(-1);
}

bool waits_in_fiber(const fiber_call& call, int options) noexcept {
  return (options & WNOHANG) == 0 && call.may_wait();
}

/// Only an end is announced by a pidfd.
bool is_for_end(int options) noexcept {
  return (options & (WUNTRACED | WCONTINUED)) == 0;
}

pid_t wait_in_fiber(thread_state& home, pid_t process, int* status, int options,
                    rusage* usage) noexcept {
  return wait_for_child(home, is_for_end(options) ? end_of(process) : fd(),
                        [&]() -> std::optional<pid_t> {
                          const pid_t child = libc.wait4(process, status, options | WNOHANG, usage);
                          return child == 0 ? std::nullopt : std::optional(child);
                        });
}

/// Returns: what waitid(2) can wait for: one process, by its number or by a pidfd.
fd end_of(idtype_t type, id_t number) noexcept {
  if (type == P_PID) return end_of(static_cast<pid_t>(number));
  return type == P_PIDFD ? fd(::fcntl(static_cast<int>(number), F_DUPFD_CLOEXEC, 0)) : fd();
}

int wait_for_info(thread_state& home, idtype_t type, id_t number, siginfo_t* info,
                  int options) noexcept {
  return wait_for_child(
      home, (options & (WSTOPPED | WCONTINUED)) == 0 ? end_of(type, number) : fd(),
      [&]() -> std::optional<int> {
        siginfo_t child_info{};
        const int result = libc.waitid(type, number, &child_info, options | WNOHANG);
        if (result == 0 && child_info.si_pid == 0) return std::nullopt;
        if (result == 0 && info != nullptr) *info = child_info;
        return result;
      });
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

pid_t wait4(pid_t process, int* status, int options, rusage* usage) {
  const fiber_call call;
  if (!waits_in_fiber(call, options)) return libc.wait4(process, status, options, usage);
  return wait_in_fiber(call.home(), process, status, options, usage);
}

pid_t waitpid(pid_t process, int* status, int options) {
  return ::wait4(process, status, options, nullptr);
}

pid_t wait3(int* status, int options, rusage* usage) {
  return ::wait4(-1, status, options, usage);
}

pid_t wait(int* status) {
  return ::wait4(-1, status, 0, nullptr);
}

/// A pidfd in non-blocking mode makes waitid(2) fail with EAGAIN.
int waitid(idtype_t type, id_t number, siginfo_t* info, int options) {
  const fiber_call call;
  const bool never_waits = type == P_PIDFD && is_nonblocking(static_cast<int>(number));
  if (never_waits || !waits_in_fiber(call, options))
    return libc.waitid(type, number, info, options);
  return wait_for_info(call.home(), type, number, info, options);
}

}  // extern "C"
