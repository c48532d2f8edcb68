// SPDX-License-Identifier: MIT
// A write to a pipe without readers fails with EPIPE, and must not kill the process by SIGPIPE.
#pragma once

#include <signal.h>

#include <ctime>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// While a guard lives, this thread does not get a SIGPIPE; its destructor discards a SIGPIPE that
/// was raised meanwhile, unless one was pending before.
/// Source: pipe(7), pthread_sigmask(3), sigtimedwait(2).
class sigpipe_guard {
 public:
  sigpipe_guard() noexcept {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  sigpipe_guard(const sigpipe_guard&) = delete;
  sigpipe_guard& operator=(const sigpipe_guard&) = delete;
  ~sigpipe_guard() {
    const timespec at_once{};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

}}}  // namespace motet::MOTET_ABI::detail
