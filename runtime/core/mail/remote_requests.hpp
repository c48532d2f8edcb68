// SPDX-License-Identifier: MIT
// What other threads ask of a fiber, gathered until its home thread looks.
#pragma once

#include <cstdint>
#include <exception>
#include <motet/detail/core/cold_part.hpp>
#include <new>

#include "core/mail/mailbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Guarded by the mailbox's lock. Made when another thread first needs it, ended with the block.
struct remote_requests : post {
  control_block* fiber = nullptr;
  bool queued = false;
  /// How many kinds of request there are, and for each its ordinal; 0: not asked for.
  std::uint8_t request_count = 0;
  std::uint8_t raise_at = 0;
  std::uint8_t cancel_at = 0;
  std::uint8_t token_at = 0;
  std::uint8_t resume_at = 0;
  std::uint8_t stop_at = 0;
  bool resumer_broken = false;
  bool cancelled = false;  // a cancellation was requested; `reason` is the reason
  int references = 0;
  cancel_reason reason = interruption::reason("");
  bool escalates = false;  // terminate(), with this grace
  clock::duration grace{};
  std::uint64_t resume_number = 0;  // of the suspend_with() that `resumption` is for
  std::exception_ptr raised;
  value_slot token;
  value_slot result;  // of stop()
  value_slot resumption;

  /// In a forked child: what other threads have asked for is forgotten.
  void abandon() noexcept {
    queued = false;
    if (cancel_at != 0) cancelled = escalates = false;
    request_count = raise_at = cancel_at = token_at = resume_at = stop_at = 0;
    raised = nullptr;
    token.reset();
    result.reset();
    resumption.reset();
  }
};

static_assert(sizeof(remote_requests) <= block_slab::remote_size);

[[gnu::noinline]] inline remote_requests& add_requests(control_block& fiber,
                                                       void* storage) noexcept {
  auto* part = ::new (storage) remote_requests;
  part->fiber = &fiber;
  fiber.known_remotely.store(true, std::memory_order_relaxed);
  return *part;
}

/// The mailbox's lock must be held, or the fiber's thread have ended.
inline remote_requests& requests_of(control_block& fiber) noexcept {
  void* storage = block_slab::beside(fiber, block_slab::remote, block_slab::remote_size);
  if (!fiber.known_remotely.load(std::memory_order_relaxed)) return add_requests(fiber, storage);
  return *static_cast<remote_requests*>(storage);
}

}}}  // namespace motet::MOTET_ABI::detail
