// SPDX-License-Identifier: MIT
// How an operation is written into an entry of a ring, and its stages there.
#pragma once

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <motet/runtime/backend.hpp>
#include <new>

#include "attempt.hpp"
#include "base/faults.hpp"
#include "retries.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

inline constexpr std::uint8_t stage_polling = 1;
inline constexpr std::uint8_t stage_refused = 2;  // by a fault point
inline constexpr std::uint8_t stage_ready = 3;    // after stage_polling, the call again
inline constexpr std::uint8_t stage_pausing = 4;  // not in the ring: see retries.hpp
inline constexpr std::uint8_t stage_exact = 5;    // see exact_wait.hpp

/// In the scratch of an operation that pauses, or that the ring polls by another descriptor.
struct uring_notes {
  retry pause;
  int exact = -1;
};
static_assert(sizeof(uring_notes) <= sizeof(operation::scratch));

inline uring_notes& notes_of(operation& op) noexcept {
  return *std::launder(reinterpret_cast<uring_notes*>(op.scratch));
}

/// For a fault point: the entry becomes a nop, because a refused operation must have no effect; the
/// error is kept for accept_refusal().
inline void refuse_entry(io_uring_sqe& entry, operation& op, int error) noexcept {
  if (error == faults::falls_short) {
    if (entry.opcode != IORING_OP_READV && entry.opcode != IORING_OP_WRITEV) entry.len = 1;
    return;
  }
  op.stage = stage_refused;
  const std::int32_t result = -error;
  std::memcpy(op.scratch, &result, sizeof result);
  ::io_uring_prep_nop(&entry);
}

/// Called when the nop of a refused entry is back.
inline void accept_refusal(operation& op) noexcept {
  op.stage = 0;
  std::memcpy(&op.result, op.scratch, sizeof op.result);
}

inline constexpr auto current_position = static_cast<std::uint64_t>(-1);

/// What the entry has in the place of an offset: where a file is read or written, the length of an
/// address, or where the kernel is to put something.
inline std::uint64_t second_word_of(const operation& op, const verb_row& row) noexcept {
  if (row.access == file_access::position) return current_position;
  switch (row.carries) {
    case payload::address:
      return op.length;
    case payload::peer:
      return reinterpret_cast<std::uintptr_t>(op.address_length);
    case payload::path_and_status:
      return reinterpret_cast<std::uintptr_t>(op.status);
    case payload::two_paths:
      return reinterpret_cast<std::uintptr_t>(op.new_path);
    default:
      return op.offset;
  }
}

/// The first word: an address, but for the size of an fallocate.
inline std::uint64_t first_word_of(const operation& op, const verb_row& row) noexcept {
  if (row.carries == payload::nothing) return 0;
  return row.carries == payload::size ? op.size : reinterpret_cast<std::uintptr_t>(op.buffer);
}

inline unsigned length_of(const operation& op, const verb_row& row) noexcept {
  switch (row.carries) {
    case payload::message:
      return 1;
    case payload::nothing:
    case payload::address:
    case payload::peer:
      return 0;
    default:
      return op.length;
  }
}

/// A ring opens a file with O_NONBLOCK first, so that the open of a FIFO would not wait for the
/// other end: a kernel worker opens it as it was asked for.
inline void force_async(io_uring_sqe& entry, const operation& op) noexcept {
  if ((op.flags & (O_NONBLOCK | O_DIRECTORY | O_PATH)) == 0) entry.flags |= IOSQE_ASYNC;
}

/// A send that must wait is made again by the kernel with what the first attempt has left of its
/// bytes: none, for a datagram of a Unix socket. So it is to fail, and waits in a poll of ours.
inline void fill_message_flags(io_uring_sqe& entry, const operation& op,
                               const verb_row& row) noexcept {
  const bool sends = !row.fills;
  if (sends || (op.flags & never_wait) != 0) {
    entry.msg_flags |= MSG_DONTWAIT;
  } else if (op.expects_wait) {
    entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
  }
}

/// A ring does not wake a poll for POLLPRI alone. TCP reports urgent data as POLLRDBAND as well.
inline void add_urgent_events(io_uring_sqe& entry, const operation& op) noexcept {
  if ((op.flags & POLLPRI) != 0) entry.poll32_events |= POLLRDBAND;
}

static_assert(operation::data_only == IORING_FSYNC_DATASYNC);

/// Source: io_uring_enter(2): all flags are at one place.
inline void fill_entry(io_uring_sqe& entry, operation& op) noexcept {
  const verb_row& row = row_of(op.kind);
  if (row.carries == payload::buffer) [[likely]] {
    const std::uint64_t offset = row.access == file_access::position ? current_position : op.offset;
    ::io_uring_prep_rw(row.ring_code, &entry, op.fd, op.buffer, op.length, offset);
  } else {
    ::io_uring_prep_rw(row.ring_code, &entry, op.fd, nullptr, length_of(op, row),
                       second_word_of(op, row));
    entry.addr = first_word_of(op, row);
  }
  entry.msg_flags = static_cast<std::uint32_t>(op.flags);
  if (row.has_message_flags) {
    fill_message_flags(entry, op, row);
  } else if (op.kind == verb::openat) {
    force_async(entry, op);
  } else if (op.kind == verb::wait_fd) {
    add_urgent_events(entry, op);
  }
  if (const int error = faults::next(row.name.fault)) refuse_entry(entry, op, error);
}

}}}  // namespace motet::MOTET_ABI::detail
