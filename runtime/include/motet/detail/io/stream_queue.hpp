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

enum class queue_result { taken, interrupted, closed };

class stream_queue {
 public:
  /// Waits until it is the running fiber's turn.
  /// Throws: std::logic_error if a fiber of another thread has the turn.
  queue_result take(const char* description, int fd);
  /// Hands the turn to the fiber that has waited longest.
  void pass() noexcept;
  /// Makes take() return `closed`, even in the fibers that are already waiting.
  void close() noexcept;
  bool closed() const noexcept { return closed_; }
  /// Whether a fiber is in a call on the stream; the call ends soon once the descriptor is closed.
  bool in_use() noexcept { return holder() != nullptr && !kept_; }
  /// The turn spans several calls, between which its holder may wait. It continues even if the
  /// stream is closed, so the owner of the queue must outlive it.
  void keep() noexcept { kept_ = true; }
  bool kept() noexcept { return holder() != nullptr && kept_; }
  /// Returns: whether a fiber of a thread other than the calling one has the turn. Any thread.
  bool taken_elsewhere() noexcept;

 private:
  thread_state* holder() noexcept;

  std::atomic<thread_state*> holder_{nullptr};
  control_block* user_ = nullptr;  // the present or latest holder of the turn
  bool closed_ = false;
  bool kept_ = false;
  std::atomic<std::uint32_t> taken_in_{this_process()};  // the process that took it last
  list<stream_wait, stream_wait_tag> waits_;
};

}}}  // namespace motet::MOTET_ABI::detail
