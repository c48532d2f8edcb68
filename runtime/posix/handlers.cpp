// SPDX-License-Identifier: MIT
// See posix/handlers.hpp.
#include "posix/handlers.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/own_handler.hpp"
#include "platform/signal_mask.hpp"
#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/signal_watch.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using handler = void (*)(int, siginfo_t*, void*);

/// What the program has installed. A handler that expects only a number ignores the rest.
struct program_action {
  std::atomic<handler> call{nullptr};
  bool has_info = false;  // SA_SIGINFO; the kernel is always asked for it
};

std::array<program_action, NSIG> actions;

/// Taken with all signals blocked: sigaction(2) may be called in a handler.
std::atomic_flag is_changing;

class change_guard {
 public:
  change_guard() noexcept {
    while (is_changing.test_and_set(std::memory_order_acquire)) {
    }
  }
  change_guard(const change_guard&) = delete;
  change_guard& operator=(const change_guard&) = delete;
  ~change_guard() { is_changing.clear(std::memory_order_release); }

 private:
  const signal_mask blocked_{SIG_BLOCK, all_but_faults()};
};

/// fork(2) may be called while another thread changes an action.
const int registered_for_fork = ::pthread_atfork(nullptr, nullptr, [] { is_changing.clear(); });

program_action& action_of(int number) noexcept {
  return actions[static_cast<std::size_t>(number)];
}

#if defined(__clang__)
#define MOTET_CALLS_ANY_HANDLER [[clang::no_sanitize("function")]]
#else
#define MOTET_CALLS_ANY_HANDLER
#endif

/// SA_RESTART is the kernel's to know: siginterrupt(3) changes it. May be left by an exception, or
/// by the end of the thread. As from the kernel, a handler gets all three arguments even without
/// SA_SIGINFO.
MOTET_CALLS_ANY_HANDLER
void note_and_call(int number, siginfo_t* info, void* context) {
  thread_state* const home = self();
  if (home != nullptr && !in_vforked_child(*home)) {
    const int error = errno;
    struct sigaction action{};
    libc.sigaction(number, nullptr, &action);
    note_handled_signal(*home, (action.sa_flags & SA_RESTART) != 0);
    errno = error;
  }
  action_of(number).call.load()(number, info, context);
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

/// Gives the kernel an action, and returns the program's view of the one before.
int change(int number, const struct sigaction* action, struct sigaction* previous,
           program_action& before) noexcept {
  const handler old_handler = before.call.load();
  const bool had_info = before.has_info;
  const int result = libc.sigaction(number, action, previous);
  if (result == 0 && previous != nullptr && previous->sa_sigaction == &note_and_call) {
    previous->sa_sigaction = old_handler;
    if (!had_info) previous->sa_flags &= ~SA_SIGINFO;
  }
  return result;
}

/// A child of vfork(2) has its parent's memory, but its own actions.
bool is_own_table() noexcept {
  thread_state* const home = self();
  return home == nullptr || !in_vforked_child(*home);
}

/// For an action that is no handler of the program's.
int install_directly(int number, const struct sigaction* action,
                     struct sigaction* previous) noexcept {
  if (!is_noted(number)) return libc.sigaction(number, action, previous);
  const change_guard guard;
  return change(number, action, previous, action_of(number));
}

}  // namespace

int install_handler(int number, const struct sigaction* action,
                    struct sigaction* previous) noexcept {
  const bool replaces = action != nullptr && has_handler(*action) && is_own_table();
  if (!replaces || !is_noted(number)) return install_directly(number, action, previous);
  const change_guard guard;
  program_action& slot = action_of(number);
  const handler old_handler = slot.call.load();
  struct sigaction replacement = *action;
  replacement.sa_sigaction = &note_and_call;
  replacement.sa_flags |= SA_SIGINFO;
  // The kernel may call the new handler at once, and until then the old one.
  struct sigaction current{};
  if (change(number, nullptr, &current, slot) < 0) return -1;
  if (action->sa_sigaction != &note_and_call) slot.call.store(action->sa_sigaction);
  const int result = libc.sigaction(number, &replacement, nullptr);
  if (result < 0) {
    slot.call.store(old_handler);
    return result;
  }
  slot.has_info = (action->sa_flags & SA_SIGINFO) != 0;
  if (previous != nullptr) *previous = current;
  return 0;
}

}}}  // namespace motet::MOTET_ABI::detail

extern "C" int motet_install_own_handler(int number, const struct sigaction* action,
                                         struct sigaction* previous) noexcept {
  return motet::detail::install_directly(number, action, previous);
}
