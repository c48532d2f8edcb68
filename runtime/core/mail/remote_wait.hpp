// SPDX-License-Identifier: MIT
// An action of another thread whose end a fiber, or a thread without fibers, waits for. The action
// may borrow from the waiting frame, because that frame is not left before the action has ended.
#pragma once

#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/base/post.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <motet/detail/platform/one_shot_event.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class remote_wait : public post {
 public:
  /// The wait is the calling fiber's, or thread's; `description` and `subject` are for people, as
  /// in a wait_record.
  explicit remote_wait(const char* description, std::int64_t subject = -1) noexcept;
  remote_wait(const remote_wait&) = delete;
  remote_wait& operator=(const remote_wait&) = delete;

  /// Ends the wait, and with that perhaps the lifetime of this object. Any thread, once.
  void end() noexcept;

  /// Waits until the action has ended, or the fiber is interrupted; this call itself never throws.
  /// Returns: whether the action has ended.
  bool await() noexcept;
  enum class result : std::uint8_t { over, interrupted, late };
  /// The same, but not beyond `deadline`; may be called again.
  result await_until(clock::time_point deadline) noexcept;
  /// Waits until the action has ended; not interruptible.
  void await_end() noexcept;

 private:
  void come_home(thread_state& home) noexcept;
  template <typename Park>
  void wait(Park park) noexcept;

  wait_record wait_;
  thread_state* const home_;  // null: of a thread without fibers
  control_block* const fiber_;
  bool waited_for_ = false;
  bool finished_ = false;  // the notification has arrived; only used on the waiting fiber's thread
  one_shot_event event_;
};

}}}  // namespace motet::MOTET_ABI::detail
