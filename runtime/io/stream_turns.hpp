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
  stream_queue read_queue;
  stream_queue write_queue;

  /// Throws: std::logic_error if a fiber of another thread is reading or writing.
  void check_threads() {
    if (read_queue.taken_elsewhere() || write_queue.taken_elsewhere()) {
      throw std::logic_error(
          "stream: a fiber of another thread is reading from it or writing to it");
    }
  }

  /// The fibers that wait for their turns get bad_file_descriptor, and so do all that come later.
  void end_queues() noexcept {
    read_queue.close();
    write_queue.close();
  }

  /// The fibers in a call on the stream must have left it before the state is destroyed.
  void await_leave() noexcept {
    thread_state* thread = self();
    if (thread == nullptr) return;
    while (read_queue.in_use() || write_queue.in_use()) thread->snooze();
  }

  /// Destroys the state of a stream that is closed, or has it destroyed by whichever fiber keeps a
  /// turn last.
  static void let_go(owned<State> state) noexcept {
    state->await_leave();
    thread_state* thread = self();
    if (state->kept() && thread != nullptr)
      thread->snooze();  // the fiber that has the turn sees that the stream is closed
    state->is_let_go_ = state->kept();
    if (state->is_let_go_) (void)state.release();
  }
  static void pass(State* state, stream_queue& turn) noexcept {
    turn.pass();
    if (state->is_let_go_ && !state->kept()) delete state;
  }

 private:
  bool kept() noexcept { return read_queue.kept() || write_queue.kept(); }

  bool is_let_go_ = false;  // the stream is closed, but a turn is kept
};

}}}  // namespace motet::MOTET_ABI::detail
