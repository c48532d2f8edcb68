// SPDX-License-Identifier: MIT
#pragma once

#include <signal.h>

#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// While it lives, the thread that made it has another signal mask.
/// Source: pthread_sigmask(3).
class signal_mask {
 public:
  /// how: what becomes of the thread's mask: SIG_BLOCK adds `signals` to it, SIG_SETMASK makes it
  ///      these.
  signal_mask(int how, const sigset_t& signals) noexcept {
    ::pthread_sigmask(how, &signals, &before_);
  }
  signal_mask(const signal_mask&) = delete;
  signal_mask& operator=(const signal_mask&) = delete;
  ~signal_mask() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}}}  // namespace motet::MOTET_ABI::detail
