// SPDX-License-Identifier: MIT
// Who makes a call: a fiber, which waits in motet, or anybody else, for whom the C library does.
#pragma once

#include <cerrno>

#include "core/thread_state.hpp"
#include "platform/apart_from_tsan.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: whether the running fiber's calls are the C library's: because of a no_switch_guard, of
///          posix::plain(), of a c_library_section, of MOTET_POSIX=off, or because the thread is in
///          its backend, in a call of motet's own, or is not motet's.
bool calls_are_plain(const thread_state& home) noexcept;

/// Where frequent calls ask first: a load and a comparison before a jump to the C library.
[[gnu::always_inline]] inline bool outside_of_fibers() noexcept {
  return self() == nullptr;
}

/// A child of vfork(2) has its parent's memory, but its own number.
bool in_vforked_child(const thread_state& home) noexcept;

/// Called before a wait, which is rare enough.
/// Returns: whether the fiber cannot wait here after all: in a signal handler on a stack of its
///          own, or in a child of vfork(2).
bool must_not_switch(const thread_state& home) noexcept;

/// A call of the C library.
class fiber_call {
 public:
  [[gnu::always_inline]] fiber_call() noexcept
      : home_(self()),
        apart_(home_ != nullptr ? &home_->running().resume_context.shadow : nullptr) {
    if (home_ == nullptr) return;
    errno_ = errno;
    if (calls_are_plain(*home_)) home_ = nullptr;
  }
  fiber_call(const fiber_call&) = delete;
  fiber_call& operator=(const fiber_call&) = delete;
  [[gnu::always_inline]] ~fiber_call() = default;

  /// Whether a fiber makes the call, unless its calls are the C library's.
  explicit operator bool() const noexcept { return home_ != nullptr; }
  /// Whether that fiber can wait here. Asked only by calls that are likely to wait.
  bool may_wait() const noexcept { return home_ != nullptr && !must_not_switch(*home_); }
  thread_state& home() const noexcept { return *home_; }
  /// Returns: `value`. A call that succeeds leaves errno as it was.
  template <typename T>
  T result(T value) const noexcept {
    if (value >= 0) errno = errno_;
    return value;
  }

 private:
  thread_state* home_;
  [[no_unique_address]] apart_from_tsan apart_;
  int errno_ = 0;
};

/// Called after a transfer that did not wait: a fiber whose calls never wait must not starve the
/// others. Calls on files do not switch, because libraries hold locks meanwhile.
void let_others_run(thread_state& home, int fd) noexcept;

/// While it lives, the thread's calls are the C library's, which holds a lock of its own.
class c_library_section {
 public:
  c_library_section() noexcept;
  c_library_section(const c_library_section&) = delete;
  c_library_section& operator=(const c_library_section&) = delete;
  ~c_library_section();
};

}}}  // namespace motet::MOTET_ABI::detail
