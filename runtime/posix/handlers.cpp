// SPDX-License-Identifier: MIT
// See posix/handlers.hpp.
#include "posix/handlers.hpp"

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

/// The handler that the program has installed, of one kind or the other. The kernel is always asked
/// for the information of SA_SIGINFO.
class program_handler {
 public:
  /// The signal may arrive at any moment, and finds the old handler or the new one.
  void set(const struct sigaction& action) noexcept {
    const bool has_info = (action.sa_flags & SA_SIGINFO) != 0;
    if (!has_info) number_only_.store(action.sa_handler);
    with_info_.store(has_info ? action.sa_sigaction : nullptr);
  }
  /// Puts it into an action as the kernel reports it.
  void show_in(struct sigaction& action) const noexcept {
    if (const auto handler = with_info_.load(); handler != nullptr) {
      action.sa_sigaction = handler;
    } else {
      action.sa_handler = number_only_.load();
      action.sa_flags &= ~SA_SIGINFO;
    }
  }
  void call(int number, siginfo_t* info, void* context) const {
    if (const auto handler = with_info_.load(); handler != nullptr)
      handler(number, info, context);
    else
      number_only_.load()(number);
  }

 private:
  std::atomic<void (*)(int, siginfo_t*, void*)> with_info_{nullptr};
  std::atomic<void (*)(int)> number_only_{nullptr};
};

std::array<program_handler, NSIG> handlers;

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

program_handler& handler_of(int number) noexcept {
  return handlers[static_cast<std::size_t>(number)];
}

/// SA_RESTART is the kernel's to know: siginterrupt(3) changes it. May be left by an exception, or
/// by the end of the thread.
void note_and_call(int number, siginfo_t* info, void* context) {
  thread_state* const home = self();
  if (home != nullptr && !in_vforked_child(*home)) {
    const int error = errno;
    struct sigaction action{};
    libc.sigaction(number, nullptr, &action);
    note_handled_signal(*home, (action.sa_flags & SA_RESTART) != 0);
    errno = error;
  }
  handler_of(number).call(number, info, context);
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

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &note_and_call;
}

/// Gives the kernel an action, and returns the program's view of the one before.
int change(int number, const struct sigaction* action, struct sigaction* previous) noexcept {
  const int result = libc.sigaction(number, action, previous);
  if (result == 0 && previous != nullptr && is_ours(*previous))
    handler_of(number).show_in(*previous);
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
  return change(number, action, previous);
}

}  // namespace

int install_handler(int number, const struct sigaction* action,
                    struct sigaction* previous) noexcept {
  const bool replaces = action != nullptr && has_handler(*action) && is_own_table();
  if (!replaces || !is_noted(number)) return install_directly(number, action, previous);
  const change_guard guard;
  struct sigaction replacement = *action;
  replacement.sa_sigaction = &note_and_call;
  replacement.sa_flags |= SA_SIGINFO;
  // The kernel may call the new handler at once, and until then the old one.
  struct sigaction current{};
  if (change(number, nullptr, &current) < 0) return -1;
  if (!is_ours(*action)) handler_of(number).set(*action);
  const int result = libc.sigaction(number, &replacement, nullptr);
  if (result < 0) {
    if (has_handler(current)) handler_of(number).set(current);
    return result;
  }
  if (previous != nullptr) *previous = current;
  return 0;
}

}}}  // namespace motet::MOTET_ABI::detail

extern "C" int motet_install_own_handler(int number, const struct sigaction* action,
                                         struct sigaction* previous) noexcept {
  return motet::detail::install_directly(number, action, previous);
}
