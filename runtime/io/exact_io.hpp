// SPDX-License-Identifier: MIT
// What calls that make several operations on a descriptor have in common.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/runtime/backend.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "core/thread_state.hpp"
#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Lives while a call makes several operations on a descriptor.
class descriptor_guard {
 public:
  /// Throws: as here().
  explicit descriptor_guard(int fd) : use_(fd) { here().calls.note_use(use_); }
  descriptor_guard(const descriptor_guard&) = delete;
  descriptor_guard& operator=(const descriptor_guard&) = delete;
  ~descriptor_guard() { use_.unlink(); }

  int get() const noexcept { return use_.fd; }
  /// Whether a fiber has closed the descriptor meanwhile: its number may be another file's now.
  bool closed() const noexcept { return use_.closed; }
  /// Until it is called with null, a fiber that closes the descriptor also ends `op`, which is on
  /// another one.
  void waits_for(const operation* op) noexcept { use_.waits_for = op; }

 private:
  descriptor_use use_;
};

/// The pauses between the tries of a call whose waits end at once because a socket has something in
/// its error queue, which makes it ready for as long as the program leaves it there.
/// Source: recv(2), MSG_ERRQUEUE.
class vain_waits {
 public:
  std::chrono::milliseconds next_pause() noexcept {
    return std::exchange(pause_, std::min(2 * pause_, longest));
  }

 private:
  static constexpr std::chrono::milliseconds longest{32};
  std::chrono::milliseconds pause_{1};
};

/// How far a call has come, and why not farther: minus an errno value, or 0.
struct progress {
  std::size_t bytes = 0;
  std::int32_t error = 0;
};

/// Calls `part(fd, rest)`, which returns how much it has moved or minus an errno value, until all
/// is moved or a part has moved nothing. Throws: as here(); what `part` throws.
template <typename Byte, typename Part>
progress move_all(int fd, std::span<Byte> buffer, Part part) {
  const descriptor_guard guard(fd);
  progress result;
  do {
    const std::int32_t count = guard.closed() ? -EBADF : part(fd, buffer.subspan(result.bytes));
    if (count < 0) result.error = count;
    if (count <= 0) break;
    result.bytes += static_cast<std::size_t>(count);
  } while (result.bytes < buffer.size());
  return result;
}

/// Writes all of a buffer, also an empty one: that finds out whether the file can be written to.
template <typename Part>
progress write_whole(int fd, std::span<const std::byte> buffer, Part part) {
  progress result = move_all(fd, buffer, part);
  if (result.error == 0 && result.bytes < buffer.size()) result.error = -EIO;
  return result;
}

/// Calls `call`, which returns its progress, and says in `error` how it went.
template <typename Call>
std::size_t progress_quietly(std::error_code& error, Call call) noexcept {
  std::size_t bytes = 0;
  quietly(error, [&] {
    const progress result = call();
    bytes = result.bytes;
    return result.error;
  });
  return bytes;
}

}}}  // namespace motet::MOTET_ABI::detail
