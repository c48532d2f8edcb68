// SPDX-License-Identifier: MIT
// Waiting for the end of a fiber of this thread: a record in its list of awaiters. From another
// thread, the wait is implemented inside the library.
#pragma once

#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/handle.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/fibers/fiber_state.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct home_awaiter : awaiter {
  explicit home_awaiter(control_block& fiber) noexcept : target(&fiber) {
    wait.target = &target;
    notify = [](awaiter& record) noexcept {
      auto& home_record = static_cast<home_awaiter&>(record);
      return home_record.wait.fiber->home->resume(home_record.wait, wake_reason::handed);
    };
  }
  control_block* target;
  wait_record wait{"await of", -1, wait_kind::fiber};
};

[[noreturn]] void refuse_to_await_oneself();
/// Parks a fiber of another thread, or blocks a thread that has no runtime; returns at once if the
/// fiber is dead.
void await_remotely(control_block& fiber);
/// A fiber other than the parent claims the failure of a dead fiber.
void claim_failure(control_block& dead) noexcept;
[[noreturn]] void throw_outcome(const control_block& dead);
/// Returns: the address of the fiber's result.
/// Throws: std::logic_error if the result has been moved out.
void* result_of(control_block& dead);
void* take_result_of(control_block& dead);
/// Cancels the fiber, and sets what awaiting it returns if that ends its body. Any thread.
cancel_result stop(control_block& fiber, value_slot&& result, call_site site) noexcept;

/// Throws: std::logic_error if `fiber` is the running one; what interrupts the wait.
[[gnu::always_inline]] inline void await_at_home(control_block& fiber, thread_core& thread) {
  if (&fiber == &thread.running()) refuse_to_await_oneself();
  thread.deliver_before_switch();
  if (fiber.dead()) {
    claim_failure(fiber);
    thread.snooze();
    return;
  }
  home_awaiter node(fiber);
  fiber.awaiters.push_back(node);
  if (thread.park(node.wait) == wake_reason::handed) {
    // Once awaited, a fiber must not hold a stack, even where it could not give it back itself.
    present_core().give_back_retired_stack();
    return;
  }
  node.unlink();
  present_core().throw_pending();
}

/// Waits until `fiber`, which a handle refers to, is dead.
/// Throws: as await_at_home().
[[gnu::always_inline]] inline void await_end(control_block& fiber) {
  thread_core* thread = self_core();
  if (thread != nullptr && thread->is_home_of(fiber)) {
    await_at_home(fiber, *thread);
  } else {
    await_remotely(fiber);
  }
}

/// The same.
/// Throws: the same, and the exception that the fiber ended with.
[[gnu::always_inline]] inline void await_value(control_block& fiber) {
  await_end(fiber);
  if (fiber.ended_by != outcome::value) throw_outcome(fiber);
}

/// Keeps an awaited fiber alive in this frame. A wait ends on the thread on which it began.
class awaited {
 public:
  explicit awaited(control_block& fiber) noexcept : fiber_(fiber) {
    thread_core* thread = self_core();
    if (thread != nullptr && thread->is_home_of(fiber)) {
      home_ = thread;
      ++fiber.references;
    } else {
      retain_remotely(fiber);
    }
  }
  awaited(const awaited&) = delete;
  awaited& operator=(const awaited&) = delete;
  ~awaited() {
    if (home_ != nullptr) {
      release_at_home(fiber_);
    } else {
      release_remotely(fiber_);
    }
  }

  /// As await_value().
  [[gnu::always_inline]] void await() {
    if (home_ != nullptr) {
      await_at_home(fiber_, *home_);
    } else {
      await_remotely(fiber_);
    }
    if (fiber_.ended_by != outcome::value) throw_outcome(fiber_);
  }

 private:
  control_block& fiber_;
  thread_core* home_ = nullptr;  // null: the fiber's home is another thread
};

}}}  // namespace motet::MOTET_ABI::detail
