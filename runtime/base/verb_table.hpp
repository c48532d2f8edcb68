// SPDX-License-Identifier: MIT
// What is to be known of each verb of the seam, a row each. Whatever differs from verb to verb is
// asked here.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/runtime/backend.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Where in a file a verb reads or writes.
enum class file_access : std::uint8_t {
  none,      // files are nothing special to it
  position,  // at the descriptor's, which the call moves
  offset,    // at operation::offset
  whole,     // a file as such, or its name: the call always waits for the disk
};

/// What an operation's pointer points to; in the last row `size`, which is no pointer.
enum class payload : std::uint8_t {
  nothing,
  buffer,
  vectors,
  message,
  address,
  peer,
  path,
  path_and_status,
  two_paths,
  size
};

/// A verb's name for users, and that of its fault point, which is the system call's.
struct names {
  constexpr names(const char* text) : label(text), fault(text) {}
  constexpr names(const char* of_verb, const char* of_call) : label(of_verb), fault(of_call) {}
  const char* label;
  const char* fault;
};

struct verb_row {
  verb kind;
  names name;
  /// Makes the call. With `nowait` it answers -EAGAIN where it would wait, and -EOPNOTSUPP where it
  /// cannot be told not to.
  /// Returns: what the call returns, or minus an errno value.
  std::int32_t (*call)(operation& op, bool nowait) noexcept;
  /// Undoes what a call that was cancelled has begun; null: such a call has done nothing.
  void (*undo)(int fd) noexcept;
  short readiness;         // POLLIN or POLLOUT; 0: operation::flags is the mask to wait for
  std::uint8_t ring_code;  // Source: io_uring_enter(2), IORING_OP_*
  file_access access;
  payload carries;
  bool fills;              // the kernel writes to what it carries
  bool has_message_flags;  // operation::flags are those of recv(2)
  bool may_raise_sigpipe;
};

/// In the order of `verb`. Read at several places on the way of each operation, so without a call.
[[gnu::visibility("hidden")]] extern const std::array<verb_row, verbs> verb_table;

inline const verb_row& row_of(verb kind) noexcept {
  return verb_table[static_cast<std::size_t>(kind)];
}

/// Returns: what `op` waits for: POLLIN, POLLOUT, or the mask of wait_fd.
inline short readiness_of(const operation& op) noexcept {
  const short readiness = row_of(op.kind).readiness;
  return readiness != 0 ? readiness : static_cast<short>(op.flags);
}

/// Whether `op` reads or writes at the descriptor's position, which a file or a disk has.
inline bool at_position(const operation& op) noexcept {
  return row_of(op.kind).access == file_access::position;
}

/// Whether `op` has a path, which begins in a directory that may be no descriptor: AT_FDCWD.
inline bool has_path(const operation& op) noexcept {
  const payload item = row_of(op.kind).carries;
  return item >= payload::path && item <= payload::two_paths;
}

/// Whether `op` is only a wait, for the mask in its flags.
inline bool only_waits(const operation& op) noexcept {
  return row_of(op.kind).readiness == 0;
}

}}}  // namespace motet::MOTET_ABI::detail
