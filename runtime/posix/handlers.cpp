// SPDX-License-Identifier: MIT
// See posix/handlers.hpp.
#include "posix/handlers.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "posix/functions.hpp"
#include "posix/signal_watch.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// With or without SA_SIGINFO: one that expects only a number ignores the rest.
using handler = void (*)(int, siginfo_t*, void*);

std::array<std::atomic<handler>, NSIG> handlers;

std::atomic<handler>& handler_of(int number) noexcept {
  return handlers[static_cast<std::size_t>(number)];
}

/// SA_RESTART is the kernel's to know: siginterrupt(3) changes it.
void note_and_call(int number, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  struct sigaction action{};
  libc.sigaction(number, nullptr, &action);
  note_handled_signal((action.sa_flags & SA_RESTART) != 0);
  errno = error;
  handler_of(number).load()(number, info, context);
}

bool is_noted(int number) noexcept {
  switch (number) {
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGSYS:
      return false;
    default:
      return number > 0 && number < NSIG && !is_switched_off;
  }
}

bool has_handler(const struct sigaction& action) noexcept {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

}  // namespace

/// The new handler may be called a moment before the kernel knows of its flags.
int install_handler(int number, const struct sigaction* action,
                    struct sigaction* previous) noexcept {
  if (!is_noted(number)) return libc.sigaction(number, action, previous);
  std::atomic<handler>& slot = handler_of(number);
  const handler old_handler = slot.load();
  struct sigaction replacement{};
  const bool replaces = action != nullptr && has_handler(*action);
  if (replaces) {
    replacement = *action;
    if (action->sa_sigaction != &note_and_call) slot.store(action->sa_sigaction);
    replacement.sa_sigaction = &note_and_call;
  }
  const int result = libc.sigaction(number, replaces ? &replacement : action, previous);
  if (result < 0 && replaces) slot.store(old_handler);
  if (result == 0 && previous != nullptr && previous->sa_sigaction == &note_and_call)
    previous->sa_sigaction = old_handler;
  return result;
}

}}}  // namespace motet::MOTET_ABI::detail
