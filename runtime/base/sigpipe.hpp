// SPDX-License-Identifier: MIT
// A write that is refused fails with an error, and must not kill the process by a signal: SIGPIPE,
// to a pipe without readers, or SIGXFSZ, beyond the limit of a file's size.
#pragma once

#include <signal.h>

#include <ctime>
#include <motet/detail/base/abi.hpp>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// While a guard lives, this thread does not get the signal; its destructor discards one that was
/// raised meanwhile, unless one was pending before.
/// Source: pipe(7), setrlimit(2), pthread_sigmask(3), sigtimedwait(2).
template <int Signal>
class held_signal {
 public:
  held_signal() noexcept {
    ::sigemptyset(&mask_);
    ::sigaddset(&mask_, Signal);
    sigset_t pending_set;
    ::sigpending(&pending_set);
    was_pending_ = ::sigismember(&pending_set, Signal) == 1;
    ::pthread_sigmask(SIG_BLOCK, &mask_, &old_mask_);
  }
  held_signal(const held_signal&) = delete;
  held_signal& operator=(const held_signal&) = delete;
  ~held_signal() {
    const timespec at_once{};
    if (!was_pending_) sys::sigtimedwait(&mask_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }

 private:
  sigset_t mask_;
  sigset_t old_mask_;
  bool was_pending_;
};

using sigpipe_guard = held_signal<SIGPIPE>;

}}}  // namespace motet::MOTET_ABI::detail
