// SPDX-License-Identifier: MIT
// What the program's signal handlers do to waits: a call of a fiber ends with EINTR where that of a
// thread would.
#pragma once

#include <cstdint>
#include <motet/detail/base/list.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <motet/runtime/backend.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// What a call that waits does when a handler has run on its thread.
/// Source: signal(7), "Interruption of system calls and library functions by signal handlers".
enum class on_signal : std::uint8_t {
  fail,     // with EINTR
  restart,  // unless the handler was installed without SA_RESTART
  go_on,
};

struct signal_watch_tag;

/// In the frame of a call, around its wait. A handler that runs before does not end the wait.
class signal_watch : public tagged_link<signal_watch_tag> {
 public:
  signal_watch(on_signal effect, wait_record& wait) noexcept;
  /// Around operations::perform_until().
  signal_watch(on_signal effect, const operation& op) noexcept;
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;
  ~signal_watch() { unlink(); }

  /// Whether a handler has ended the wait, for wake_reason::time.
  bool ended() const noexcept { return ended_; }
  /// Called after handlers have run.
  void look(thread_state& home) noexcept;

 private:
  signal_watch(on_signal effect, wait_record* wait, const operation* op) noexcept;
  wait_record* open_wait() const noexcept;

  const on_signal effect_;
  wait_record* const wait_;
  const operation* const op_;
  std::uint64_t seen_ = 0;  // handlers, when the wait began
  bool ended_ = false;
};

/// Called by each signal handler, before the program's own. `restarts`: it was installed with
/// SA_RESTART. Async-signal-safe.
void note_handled_signal(bool restarts) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
