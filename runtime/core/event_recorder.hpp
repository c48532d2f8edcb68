// SPDX-License-Identifier: MIT
// What a thread tells its recorder: that of a trace, in the room `observe`, or of a simulation, in
// `testing`. It exists only while the thread records; then the countdown to the next poll is held
// at 1, so that each switch calls it, and a thread that does not record pays nothing per switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/core/control_block.hpp>
#include <optional>

#include "core/trace_events.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class event_recorder {
 public:
  event_recorder() = default;
  event_recorder(const event_recorder&) = delete;
  event_recorder& operator=(const event_recorder&) = delete;
  virtual ~event_recorder() = default;

  /// In a forked child: the ring is the parent's.
  virtual void abandon() noexcept = 0;
  /// `main` is the first fiber of the thread.
  virtual void begin(const control_block& main) noexcept = 0;
  /// The thread switched from `previous` to `next`, or to no fiber yet (null).
  virtual void note_switch(const control_block& previous, const control_block* next) noexcept = 0;
  /// After a switch to no fiber: the fiber that runs next, or null if there is still none.
  virtual void note_next(const control_block* next) noexcept = 0;
  /// `fiber` runs from here on: the thread's first, or the running fiber under a new identity.
  virtual void note_run(const control_block& fiber) noexcept = 0;
  /// `fiber` becomes runnable.
  virtual void note_wake(const control_block& fiber) noexcept = 0;
  /// The cause of the wake-ups that follow.
  virtual void woken_by(trace::cause cause) noexcept = 0;
  /// The next fiber is woken by a timer that fires so long after its time.
  virtual void timer_is_late(clock::duration late) noexcept = 0;
  virtual void note_name(const control_block& fiber) noexcept = 0;
  virtual void note_interrupt(const control_block& fiber, interrupt reason) noexcept = 0;
  /// An event that belongs to no fiber of this thread.
  virtual void note(trace::kind event, std::uint64_t second) noexcept = 0;
  void note(trace::kind event) noexcept { note(event, 0); }
  /// `by_itself`: the fiber that runs has looked, and goes on.
  virtual void note_poll(std::size_t runnable, bool by_itself) noexcept = 0;
  /// Returns: which of `count` branches select() is to try next; nothing: chance decides.
  virtual std::optional<std::size_t> choose_branch([[maybe_unused]] std::size_t count) noexcept {
    return std::nullopt;
  }
};

/// The running fiber wakes `fiber` of another thread. Records that, if this thread records.
void note_post(const control_block& fiber) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
