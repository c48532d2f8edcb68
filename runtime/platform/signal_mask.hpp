// SPDX-License-Identifier: MIT
#pragma once

#include <signal.h>

#include <initializer_list>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A thread that is begun with these blocked gets no signals that other threads or processes send,
/// but those for faults of its own, so that the program's handlers see them. A signal for the
/// process would else go to an idle thread of motet's, whatever the program's threads block.
inline sigset_t all_but_faults() noexcept {
  sigset_t signals;
  ::sigfillset(&signals);
  for (const int synchronous :
       {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGXFSZ}) {
    ::sigdelset(&signals, synchronous);
  }
  return signals;
}

/// While it lives, the thread that made it has another signal mask.
/// Source: pthread_sigmask(3).
class signal_mask {
 public:
  /// how: what becomes of the thread's mask: SIG_BLOCK adds `signals` to it, SIG_SETMASK makes it
  ///      these.
  signal_mask(int operation, const sigset_t& signals) noexcept {
    ::pthread_sigmask(operation, &signals, &old_mask_);
  }
  signal_mask(const signal_mask&) = delete;
  signal_mask& operator=(const signal_mask&) = delete;
  ~signal_mask() { ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr); }

 private:
  sigset_t old_mask_{};
};

}}}  // namespace motet::MOTET_ABI::detail
