// SPDX-License-Identifier: MIT
// What all kinds of streams share: who uses which direction, and the calls, which wait for their
// turn and report an error as an exception or as a code.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <motet/detail/base/owned.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/detail/io/stream_queue.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "io/vectors.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A base of `State`, what a kind of streams keeps for each, in one direction or in two.
template <typename State, std::size_t Directions = 2>
class stream_turns {
 public:
  stream_queue& queue(bool writes) noexcept { return queues_[writes ? Directions - 1 : 0]; }

  /// Throws: std::logic_error if a fiber of another thread is reading or writing.
  void check_threads(const char* kind = "stream") {
    if (std::ranges::any_of(queues_, &stream_queue::held_elsewhere)) {
      throw std::logic_error(std::string(kind) +
                             ": a fiber of another thread is reading from it or writing to it");
    }
  }

  /// The fibers that wait for their turns get bad_file_descriptor, and so do all that come later.
  void end_queues() noexcept {
    for (stream_queue& queue : queues_) queue.close();
  }

  /// The fibers in a call on the stream must have left it before the state is destroyed.
  void await_leave() noexcept {
    thread_state* thread = self();
    if (thread == nullptr) return;
    while (std::ranges::any_of(queues_, &stream_queue::in_call)) thread->snooze();
  }

  /// Destroys the state of a closed stream; if a turn is held across calls, the fiber that releases
  /// it last does so.
  static void destroy_when_unused(owned<State> state) noexcept {
    if (state == nullptr) return;
    state->await_leave();
    thread_state* thread = self();
    if (state->held_across_calls() && thread != nullptr)
      thread->snooze();  // the fiber that holds the turn sees that the stream is closed
    state->orphaned_ = state->held_across_calls();
    if (state->orphaned_) (void)state.release();
  }
  /// Ends a turn that was held across calls.
  static void release(State* state, stream_queue& turn) noexcept {
    turn.release();
    if (state->orphaned_ && !state->held_across_calls()) delete state;
  }

 private:
  bool held_across_calls() noexcept {
    return std::ranges::any_of(queues_, &stream_queue::held_across_calls);
  }

  std::array<stream_queue, Directions> queues_;
  bool orphaned_ = false;  // the stream is closed, but a turn is held across calls
};

/// Writes all of `buffer`, at least once, by `move(part)`. Returns: 0, or minus an errno value.
template <typename Move>
std::int32_t move_whole(std::span<const std::byte> buffer, Move move) {
  do {
    const std::int32_t count = move(buffer);
    if (count < 0) return count;
    buffer = buffer.subspan(static_cast<std::size_t>(count));
  } while (!buffer.empty());
  return 0;
}

/// One direction of a stream, and a base of `Half`, which adds what a kind of stream does in its
/// turn: move() for one buffer and move_part() for a part of several. They return a count of bytes
/// or minus an errno value, as operations do. For direction_of, `Half` also has of(stream), and
/// kernel_descriptor(), with which the kernel may move bytes; and `State` has descriptor().
template <typename Half, typename State, bool Writes>
class stream_half {
 public:
  using state_type = State;

  /// `stream_state` is null for a closed stream.
  explicit stream_half(State* stream_state) noexcept : state_(stream_state) {}

  State* state() const noexcept { return state_; }
  stream_queue& queue() const noexcept { return state_->queue(Writes); }
  int descriptor() const noexcept { return state_ == nullptr ? -1 : state_->descriptor(); }

  /// Waits for the turn. Returns: 0, -ECANCELED or -EBADF.
  /// Throws: as acquire_turn().
  std::int32_t acquire() {
    return net::acquire_turn(queue(), Writes ? "turn to write on fd" : "turn to read on fd",
                             descriptor());
  }
  std::int32_t read(std::span<std::byte> buffer) {
    return in_turn([&] { return self().move(buffer); });
  }
  std::int32_t write(std::span<const std::byte> buffer) {
    return in_turn([&] { return self().move(buffer); });
  }
  std::int32_t write_all(std::span<const std::byte> buffer) {
    return in_turn([&] {
      return move_whole(buffer, [&](std::span<const std::byte> part) { return self().move(part); });
    });
  }
  std::int32_t write_vectors(std::span<const iovec> buffers) {
    return in_turn([&] {
      return move_vectors(buffers,
                          [&](std::span<const iovec> part) { return self().move_part(part); });
    });
  }

  /// Ends a turn that was held across calls.
  void release() noexcept { State::release(state_, queue()); }

  /// Throws: the error of a call, unless `result` is a count.
  std::size_t check(std::int32_t result, const char* call, int number) const {
    return check_result(result, call, number);
  }
  /// Replaces `error` by one that no errno value can express.
  void refine(std::error_code&) const noexcept {}

 protected:
  template <typename Call>
  std::int32_t in_turn(Call call) {
    const net::stream_turn turn(queue(), self().acquire());
    return turn.refusal() != 0 ? turn.refusal() : call();
  }

 private:
  Half& self() noexcept { return static_cast<Half&>(*this); }

  State* state_;
};

/// Calls `call(half)`, which throws its error. `name` is the call's.
template <typename Half, typename Call>
std::size_t call_throwing(Half half, const char* name, Call call) {
  here().deliver();
  const int number = half.descriptor();  // the stream may be moved while the call waits
  return half.check(half.state() == nullptr ? -EBADF : call(half), name, number);
}

/// The same, with the error as a code.
template <typename Half, typename Call>
std::size_t call_quietly(Half half, std::error_code& error, Call call) noexcept {
  const std::size_t count =
      quietly(error, [&] { return half.state() == nullptr ? -EBADF : call(half); });
  half.refine(error);
  return count;
}

template <typename Half>
std::size_t stream_read(Half input, std::span<std::byte> buffer) {
  return call_throwing(input, "read", [&](Half& half) { return half.read(buffer); });
}
template <typename Half>
std::size_t stream_read(Half input, std::span<std::byte> buffer, std::error_code& error) noexcept {
  return call_quietly(input, error, [&](Half& half) { return half.read(buffer); });
}

template <typename Half>
std::size_t stream_write(Half output, std::span<const std::byte> buffer) {
  return call_throwing(output, "write", [&](Half& half) { return half.write(buffer); });
}
template <typename Half>
std::size_t stream_write(Half output, std::span<const std::byte> buffer,
                         std::error_code& error) noexcept {
  return call_quietly(output, error, [&](Half& half) { return half.write(buffer); });
}

template <typename Half>
void stream_write_all(Half output, std::span<const std::byte> buffer) {
  call_throwing(output, "write_all", [&](Half& half) { return half.write_all(buffer); });
}
template <typename Half>
void stream_write_all(Half output, std::span<const std::byte> buffer,
                      std::error_code& error) noexcept {
  call_quietly(output, error, [&](Half& half) { return half.write_all(buffer); });
}

template <typename Half>
void stream_writev_all(Half output, std::span<const iovec> buffers) {
  call_throwing(output, "writev_all", [&](Half& half) { return half.write_vectors(buffers); });
}

/// The direction `Half` of a stream, for calls that hold their turn across several. The object of
/// its calls is the stream's state.
template <typename Half>
struct direction_of {
  static Half half(void* object) noexcept {
    return Half(static_cast<typename Half::state_type*>(object));
  }

  static void* acquire(void* stream, std::error_code& error) noexcept {
    Half direction = Half::of(stream);
    quietly(error, [&] { return direction.state() == nullptr ? -EBADF : direction.acquire(); });
    if (!error) direction.queue().hold_across_calls();
    return direction.state();
  }
  static void release(void* object) noexcept { half(object).release(); }
  static std::size_t move(void* object, std::span<std::byte> bytes,
                          std::error_code& error) noexcept {
    Half direction = half(object);
    const std::size_t count = quietly(error, [&] { return direction.move(bytes); });
    direction.refine(error);
    return count;
  }
  static int descriptor(void* object) noexcept { return half(object).kernel_descriptor(); }

  static constexpr direction_calls calls{acquire, release, move, descriptor};
};

}}}  // namespace motet::MOTET_ABI::detail
