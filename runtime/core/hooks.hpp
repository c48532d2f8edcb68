// SPDX-License-Identifier: MIT
// Calls from a lower room to a higher one, in one table, which runtime/hooks.cpp fills. The entries
// of a room that is not built stay null.
#pragma once

#include <cstdint>
#include <exception>
#include <iosfwd>
#include <memory>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/runtime/options.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class blocking_call;
class remote_wait;

enum class snapshot_cause : std::uint8_t { signal, deadline, stall, failure };

struct upward_calls {
  // cancellation
  /// Does what other threads have asked of a fiber, in the order of their requests.
  void (*do_requests)(post& requests, thread_state& home) noexcept;
  /// Whether a wait of the running fiber must end before it begins.
  bool (*interrupted_at_once)(thread_state& thread) noexcept;

  // fibers
  /// The first function of a fiber, on its own stack: calls the body, then ends the fiber.
  void (*fiber_main)(void* block);
  /// The same on a thread that counts: measures the stacks of some fibers.
  void (*counted_fiber_main)(void* block);

  // threads
  /// Waits for the end of a call that a plain thread makes, as remote_wait::await() does; gives
  /// notice if no thread begins it for long.
  bool (*await_thread)(remote_wait& end, blocking_call& call) noexcept;

  // runtime
  /// See begin_here().
  thread_core& (*begin_runtime)();
  /// Begins the runtime of run(), or of a thread.
  /// Returns: its main fiber, the running one.
  /// Throws: as the constructor of session.
  control_block& (*begin_session)(const options& settings);
  /// Ends the runtime of that main fiber, with all its fibers.
  /// Returns: if `returns_first`, the first failure that no fiber has received; on_unhandled gets
  ///          the others.
  std::exception_ptr (*end_session)(control_block& main, bool returns_first) noexcept;
  /// Creates the backend in a forked child at its first switchpoint.
  /// Returns: null, or the error if there can be none.
  std::exception_ptr (*make_kernel_of_child)(thread_state& child) noexcept;
  /// See deadlock_detector.
  bool (*end_idle)(deadlock_detector& detector) noexcept;
  void (*look_whether_stuck)(deadlock_detector& detector) noexcept;

  // migration; called only for a fiber that has a journey
  /// Whether its stack is on another thread, or about to be. At home.
  bool (*is_away)(const journey& trip) noexcept;
  /// Brings it home, if it is away, and ends its children abroad; nothing interrupts that.
  void (*come_home)(control_block& fiber) noexcept;
  /// The running fiber goes to where `owner`, one of the blocks it runs as, is at home.
  void (*go_to)(journey& trip, const control_block& owner) noexcept;
  /// Called at home, after come_home().
  /// Returns: the failure of a child on another thread, or null.
  std::exception_ptr (*failure_while_away)(control_block& fiber) noexcept;
  /// Returns: an exception raised after the fiber's last switchpoint on another thread; or null.
  std::exception_ptr (*raised_too_late)(control_block& fiber) noexcept;
  /// Requests to a fiber that is away are forwarded to the thread where it is.
  void (*forward_stops)(journey& trip) noexcept;
  void (*forward_result)(journey& trip, value_slot&& value) noexcept;
  /// From now on the journey does not lead to the fiber's block, which goes away.
  void (*dispose_journey)(journey& trip) noexcept;

  // observe; if that is not built, all are null, and nothing asks for write_dump
  /// Before a thread's runtime begins: answers the dump signal, and monitors stalls.
  /// Returns: the thread's recorder, or null.
  /// Throws: std::invalid_argument, std::system_error, std::bad_alloc.
  std::unique_ptr<event_recorder> (*prepare)(const options& settings);
  /// The thread's runtime begins.
  void (*observe)(thread_state& thread, std::unique_ptr<event_recorder> recorder) noexcept;
  /// Called before this thread's runtime ends: returns when no report about it is in progress.
  void (*unobserve)(const thread_state& thread) noexcept;
  /// Round a fork.
  void (*lock_observers)();
  void (*unlock_observers)() noexcept;
  /// In the child instead of unlock_observers().
  void (*abandon_observers)() noexcept;
  /// See dump_request.
  void (*write_dump)(dump_request& request) noexcept;
  /// Writes a line for each fiber of the thread.
  void (*dump_fibers)(thread_state& thread, std::ostream& output);
  /// See save_snapshot().
  void (*save_snapshot)(snapshot_cause cause) noexcept;
};

extern const upward_calls hooks [[gnu::visibility("hidden")]];

/// Returns: null if the fiber has never been away.
inline journey* journey_of_any(const control_block& fiber) noexcept {
  const cold_part* part = cold_if_any(fiber);
  return part == nullptr ? nullptr : part->travels.trip;
}

inline bool is_away(const control_block& fiber) noexcept {
  const journey* trip = journey_of_any(fiber);
  return trip != nullptr && hooks.is_away(*trip);
}

[[gnu::noinline]] inline void come_home(control_block& fiber) noexcept {
  if (journey_of_any(fiber) != nullptr) hooks.come_home(fiber);
}

inline void go_to(const control_block& owner) noexcept {
  if (journey* trip = journey_of_any(traveller_of(self()->running()))) hooks.go_to(*trip, owner);
}

/// Brings the fiber home when the function ends that must end there: the body of a fiber.
class homecoming {
 public:
  explicit homecoming(control_block& fiber) noexcept : fiber_(fiber) {}
  homecoming(const homecoming&) = delete;
  homecoming& operator=(const homecoming&) = delete;
  ~homecoming() {
    if (fiber_.has_cold_part) [[unlikely]]
      come_home(fiber_);
  }

 private:
  control_block& fiber_;
};

}}}  // namespace motet::MOTET_ABI::detail
