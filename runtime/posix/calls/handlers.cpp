// SPDX-License-Identifier: MIT
// sigaction(2), signal(2) and their relatives.
#include "posix/handlers.hpp"

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#if defined(MOTET_TSAN)
#include <dlfcn.h>

#include "posix/functions.hpp"
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

using handler = void (*)(int);

/// Those for which siginterrupt(3) has been called: signal(2) installs handlers without SA_RESTART.
std::atomic<std::uint64_t> interrupting{0};

bool is_signal(int number) noexcept {
  return number > 0 && number < NSIG;
}

std::uint64_t bit_of(int number) noexcept {
  return std::uint64_t{1} << (number - 1);
}

/// Returns: the handler before; SIG_ERR with errno.
handler replace_handler(int number, handler new_handler, const sigset_t& mask, int flags) noexcept {
  if (new_handler == SIG_ERR || !is_signal(number)) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = new_handler;
  action.sa_mask = mask;
  action.sa_flags = flags;
  return install_handler(number, &action, &previous) < 0 ? SIG_ERR : previous.sa_handler;
}

/// ThreadSanitizer installs its own handlers before instrumented code can run.
#if defined(MOTET_TSAN)
#if defined(__clang__)
#define MOTET_UNINSTRUMENTED [[clang::disable_sanitizer_instrumentation]]
#else
#define MOTET_UNINSTRUMENTED [[gnu::no_sanitize("thread")]]
#endif
MOTET_UNINSTRUMENTED
int call_next_sigaction(int number, const struct sigaction* action,
                        struct sigaction* previous) noexcept {
  const auto next = reinterpret_cast<decltype(&::sigaction)>(::dlsym(RTLD_NEXT, "sigaction"));
  return next(number, action, previous);
}
#else
#define MOTET_UNINSTRUMENTED
#endif

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

MOTET_UNINSTRUMENTED
int sigaction(int number, const struct sigaction* action, struct sigaction* previous) noexcept {
#if defined(MOTET_TSAN)
  if (!is_resolved) return call_next_sigaction(number, action, previous);
#endif
  return install_handler(number, action, previous);
}

/// Source: signal(2), "Portability": of BSD.
sighandler_t signal(int number, sighandler_t new_handler) noexcept {
  sigset_t mask{};
  ::sigemptyset(&mask);
  ::sigaddset(&mask, number);
  const bool interrupts = is_signal(number) && (interrupting & bit_of(number)) != 0;
  return replace_handler(number, new_handler, mask, interrupts ? 0 : SA_RESTART);
}

sighandler_t bsd_signal(int number, sighandler_t new_handler) noexcept {
  return ::signal(number, new_handler);
}

sighandler_t ssignal(int number, sighandler_t new_handler) noexcept {
  return ::signal(number, new_handler);
}

/// Of System V: a handler is called once.
sighandler_t sysv_signal(int number, sighandler_t new_handler) noexcept {
  const sigset_t none{};
  constexpr auto flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  return replace_handler(number, new_handler, none, flags);
}

sighandler_t __sysv_signal(  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
    int number, sighandler_t new_handler) noexcept {
  return ::sysv_signal(number, new_handler);
}

int siginterrupt(int number, int interrupts) noexcept {
  struct sigaction action{};
  if (::sigaction(number, nullptr, &action) < 0) return -1;
  if (interrupts != 0) {
    interrupting |= bit_of(number);
    action.sa_flags &= ~SA_RESTART;
  } else {
    interrupting &= ~bit_of(number);
    action.sa_flags |= SA_RESTART;
  }
  return ::sigaction(number, &action, nullptr);
}

}  // extern "C"
