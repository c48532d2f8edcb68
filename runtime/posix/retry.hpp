// SPDX-License-Identifier: MIT
// Calls that are tried without waiting, and again when poll(2) says so: nothing of the descriptor
// is changed, and nothing about it remembered.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "core/in_flight.hpp"
#include "io/exact_io.hpp"
#include "posix/signal_watch.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The waits of one call. If a fiber closes the descriptor between two of them, the call ends with
/// EBADF: the number may be another file's by then.
class call_waits {
 public:
  /// `limit_option`: SO_RCVTIMEO or SO_SNDTIMEO. `call` is for dumps.
  call_waits(thread_state& home, int fd, short events, int limit_option, const char* call) noexcept
      : home_(home), use_(fd), events_(events), limit_option_(limit_option), call_(call) {}
  call_waits(const call_waits&) = delete;
  call_waits& operator=(const call_waits&) = delete;
  ~call_waits() { use_.unlink(); }

  enum class verdict : std::uint8_t {
    retry,   // the descriptor is ready
    failed,  // errno says why
    block,   // no fiber can wait for this descriptor, or here: the C library may
  };
  /// Called when the call would wait.
  verdict await() noexcept;
  /// Called when a part of what the call moves has been moved.
  void progressed() noexcept { vain_ = 0; }
  /// Waits a little, because no event announces what the call waits for.
  verdict pause() noexcept;
  int fd() const noexcept { return use_.fd; }
  /// Whether the call has waited.
  bool began() const noexcept { return began_; }
  /// Whether a wait has ended by the time limit.
  bool expired() const noexcept { return expired_; }

 private:
  verdict begin() noexcept;
  std::int32_t await_ready_again() noexcept;

  thread_state& home_;
  descriptor_use use_;
  const short events_;
  const int limit_option_;
  const char* const call_;
  bool began_ = false;
  bool expired_ = false;
  unsigned vain_ = 0;  // waits since the last progress
  clock::time_point due_ = no_limit;
  std::optional<signal_start> start_;  // once the call has begun to wait
  vain_waits pauses_;
};

/// Calls `attempt()`, which fails with EAGAIN where it would wait, until it need not; or
/// `block()`, where a fiber cannot wait.
/// Returns: what the last of them returned; -1 with errno if the wait failed.
template <typename Waits, typename Attempt, typename Block>
auto retry(Waits& waits, Attempt attempt, Block block) noexcept -> decltype(attempt()) {
  for (;;) {
    const auto result = attempt();
    if (result >= 0 || errno != EAGAIN) return result;
    switch (waits.await()) {
      case call_waits::verdict::retry:
        break;
      case call_waits::verdict::failed:
        return result;
      case call_waits::verdict::block:
        return block();
    }
  }
}

}}}  // namespace motet::MOTET_ABI::detail
