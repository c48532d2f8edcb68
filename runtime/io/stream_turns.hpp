// SPDX-License-Identifier: MIT
// Who uses which direction of a stream, and when its state may go after it has been closed.
#pragma once

#include <motet/detail/base/owned.hpp>
#include <motet/detail/io/stream_queue.hpp>
#include <stdexcept>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A base of `State`, what a kind of streams keeps for each.
template <typename State>
class stream_turns {
 public:
  stream_queue reading;
  stream_queue writing;

  /// Throws: std::logic_error if a fiber of another thread is reading or writing.
  void check_threads() {
    if (reading.taken_elsewhere() || writing.taken_elsewhere()) {
      throw std::logic_error(
          "stream: a fiber of another thread is reading from it or writing to it");
    }
  }

  /// The fibers that wait for their turns get bad_file_descriptor, and so do all that come later.
  void end_queues() noexcept {
    reading.close();
    writing.close();
  }

  /// The fibers in a call on the stream must have left it before the state is destroyed.
  void await_leave() noexcept {
    thread_state* thread = self();
    if (thread == nullptr) return;
    while (reading.in_use() || writing.in_use()) thread->snooze();
  }

  /// Destroys the state of a stream that is closed, or has it destroyed by whichever fiber keeps a
  /// turn last.
  static void let_go(owned<State> closed) noexcept {
    closed->await_leave();
    thread_state* thread = self();
    if (closed->kept() && thread != nullptr)
      thread->snooze();  // the fiber that has the turn sees that the stream is closed
    closed->is_let_go_ = closed->kept();
    if (closed->is_let_go_) (void)closed.release();
  }
  static void pass(State* held, stream_queue& turn) noexcept {
    turn.pass();
    if (held->is_let_go_ && !held->kept()) delete held;
  }

 private:
  bool kept() noexcept { return reading.kept() || writing.kept(); }

  bool is_let_go_ = false;  // the stream is closed, but a turn is kept
};

}}}  // namespace motet::MOTET_ABI::detail
