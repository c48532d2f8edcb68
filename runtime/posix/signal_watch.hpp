// SPDX-License-Identifier: MIT
// What the program's signal handlers do to waits: a call of a fiber ends with EINTR where that of a
// thread would.
#pragma once

#include <cstdint>
#include <motet/detail/core/wait_record.hpp>
#include <motet/runtime/backend.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// What a call that waits does when a handler has run on its thread.
/// Source: signal(7), "Interruption of system calls and library functions by signal handlers".
enum class on_signal : std::uint8_t {
  fail,     // with EINTR
  restart,  // unless the handler was installed without SA_RESTART
  go_on,
};

/// The beginning of a call, which may wait several times.
class signal_start {
 public:
  signal_start(on_signal effect) noexcept;  // NOLINT(google-explicit-constructor): of a single wait
  /// Whether a handler has run since then that ends the call. Its thread.
  bool passed() const noexcept;

 private:
  on_signal effect_;
  std::uint64_t seen_;  // handlers, at the beginning
};

/// In the frame of a call, around one of its waits.
class signal_watch {
 public:
  signal_watch(const signal_start& start, wait_record& wait) noexcept
      : signal_watch(start, &wait, nullptr) {}
  /// Around operations::perform_until().
  signal_watch(const signal_start& start, const operation& op) noexcept
      : signal_watch(start, nullptr, &op) {}
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;
  ~signal_watch();

  /// Whether a handler has ended the wait, for wake_reason::time.
  bool ended() const noexcept { return ended_; }
  /// Ends the wait if a handler has run that ends the call.
  void look(thread_state& home) noexcept;
  signal_watch* next() const noexcept { return next_; }

 private:
  signal_watch(const signal_start& start, wait_record* wait, const operation* op) noexcept;
  wait_record* open_wait() const noexcept;

  const signal_start start_;
  wait_record* const wait_;
  const operation* const op_;
  signal_watch* next_ = nullptr;
  signal_watch* previous_ = nullptr;
  bool ended_ = false;
};

/// Called by each signal handler, before the program's own. `restarts`: it was installed with
/// SA_RESTART. Async-signal-safe.
void note_handled_signal(thread_state& home, bool restarts) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
