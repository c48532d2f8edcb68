// SPDX-License-Identifier: MIT
// A turn lets one fiber at a time use a direction of a stream, or a listener, in the order in which
// the fibers asked: the kernel promises no order among operations on one descriptor, a stream does.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/base/list.hpp>
#include <motet/detail/platform/process.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;
struct control_block;
struct stream_wait_tag;
struct stream_wait;

enum class queue_result { acquired, interrupted, closed };

class stream_queue {
 public:
  /// Waits until it is the running fiber's turn.
  /// Throws: std::logic_error if a fiber of another thread has the turn.
  queue_result acquire(const char* description, int fd);
  /// Hands the turn to the fiber that has waited longest.
  void release() noexcept;
  /// Makes acquire() return `closed`, even in the fibers that are already waiting.
  void close() noexcept;
  bool closed() const noexcept { return closed_; }
  /// Whether a fiber is in a call on the stream; the call ends soon once the descriptor is closed.
  bool in_call() noexcept { return holder() != nullptr && !across_calls_; }
  /// The turn spans several calls, between which its holder may wait. It continues even if the
  /// stream is closed, so the owner of the queue must outlive it.
  void hold_across_calls() noexcept { across_calls_ = true; }
  bool held_across_calls() noexcept { return holder() != nullptr && across_calls_; }
  /// Returns: whether a fiber of a thread other than the calling one has the turn. Any thread.
  bool held_elsewhere() noexcept;

 private:
  thread_state* holder() noexcept;

  std::atomic<thread_state*> holder_{nullptr};
  control_block* user_ = nullptr;  // the present or latest holder of the turn
  bool closed_ = false;
  bool across_calls_ = false;
  std::atomic<std::uint32_t> process_{this_process()};  // in which it was acquired last
  list<stream_wait, stream_wait_tag> waits_;
};

}}}  // namespace motet::MOTET_ABI::detail
