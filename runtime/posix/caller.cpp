// SPDX-License-Identifier: MIT
// See posix/caller.hpp.
#include "posix/caller.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "base/system_calls.hpp"
#include "core/mail/mailbox.hpp"
#include "posix/functions.hpp"
#include "posix/sections.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// In how many c_library_sections the thread is.
[[gnu::tls_model("initial-exec")]] thread_local unsigned library_depth = 0;

}  // namespace

c_library_section::c_library_section() noexcept {
  ++library_depth;
}

c_library_section::~c_library_section() {
  --library_depth;
}

bool calls_are_plain(const thread_state& home) noexcept {
  return home.schedule.in_backend || home.foreign || is_switched_off || library_depth > 0 ||
         sys::is_own_call() || !home.may_switch() || in_plain_section();
}

void let_others_run(thread_state& home, int fd) noexcept {
  if (!home.schedule.overdue() || is_file(fd) || must_not_switch(home)) return;
  home.checkpoint();
}

namespace {

/// A spawned fiber's stack has known bounds; a main fiber runs on its thread's.
bool on_signal_stack(const thread_state& home) noexcept {
  const stack& fiber_stack = home.running().runs_on;
  const auto* const frame = static_cast<const std::byte*>(__builtin_frame_address(0));
  if (fiber_stack.bottom != nullptr) return frame < fiber_stack.bottom || frame >= fiber_stack.top;
  stack_t current{};
  return ::sigaltstack(nullptr, &current) == 0 && (current.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace

bool in_vforked_child(const thread_state& home) noexcept {
  return ::syscall(SYS_gettid) != home.mail().number_of_thread();
}

bool must_not_switch(const thread_state& home) noexcept {
  return on_signal_stack(home) || in_vforked_child(home);
}

}}}  // namespace motet::MOTET_ABI::detail
