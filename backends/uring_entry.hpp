// SPDX-License-Identifier: MIT
// How an operation is written into an entry of a ring, and its stages there.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <cstring>
#include <motet/backend.hpp>
#include <new>

#include "attempt.hpp"
#include "retries.hpp"
#include "words/faults.hpp"

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
/// error is kept for take_refusal().
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
inline void take_refusal(operation& op) noexcept {
  op.stage = 0;
  std::memcpy(&op.result, op.scratch, sizeof op.result);
}

inline void fill_entry(io_uring_sqe& place, operation& op) noexcept {
  constexpr auto current_position = static_cast<std::uint64_t>(-1);
  io_uring_sqe* entry = &place;
  switch (op.kind) {
    case verb::read:
      ::io_uring_prep_read(entry, op.fd, op.buffer, op.length, current_position);
      break;
    case verb::write:
      ::io_uring_prep_write(entry, op.fd, op.buffer, op.length, current_position);
      break;
    case verb::readv:
      ::io_uring_prep_readv(entry, op.fd, op.vectors, op.length, current_position);
      break;
    case verb::writev:
      ::io_uring_prep_writev(entry, op.fd, op.vectors, op.length, current_position);
      break;
    case verb::recv:
      ::io_uring_prep_recv(entry, op.fd, op.buffer, op.length, op.flags);
      if (op.drained) entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
      break;
    case verb::send:
      ::io_uring_prep_send(entry, op.fd, op.buffer, op.length, op.flags);
      break;
    case verb::accept:
      ::io_uring_prep_accept(entry, op.fd, op.address, op.address_length, op.flags);
      break;
    case verb::connect:
      ::io_uring_prep_connect(entry, op.fd, op.address, op.length);
      break;
    case verb::wait_fd:
      ::io_uring_prep_poll_add(entry, op.fd, static_cast<unsigned>(op.flags));
      break;
  }
  if (const int error = faults::next(name_of(op.kind))) refuse_entry(place, op, error);
}

}}}  // namespace motet::MOTET_ABI::detail
