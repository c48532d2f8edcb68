// SPDX-License-Identifier: MIT
// A counted reference to a control block: counted without a lock on the fiber's home thread.
#pragma once

#include <motet/detail/base/taken.hpp>
#include <motet/detail/core/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Called on a thread other than the fiber's own.
void retain_remotely(control_block& fiber) noexcept;
void release_remotely(control_block& fiber) noexcept;
/// On its own thread, perhaps the last reference there.
void release_last(control_block& fiber) noexcept;

inline bool at_home(const control_block& fiber) noexcept {
  const thread_core* thread = self_core();
  return thread != nullptr && thread->is_home_of(fiber);
}

inline void retain(control_block& fiber) noexcept {
  if (at_home(fiber)) {
    ++fiber.references;
  } else {
    retain_remotely(fiber);
  }
}

inline void release_at_home(control_block& fiber) noexcept {
  if (fiber.references > 1) {
    --fiber.references;
  } else {
    release_last(fiber);
  }
}

inline void release(control_block& fiber) noexcept {
  if (at_home(fiber)) {
    release_at_home(fiber);
  } else {
    release_remotely(fiber);
  }
}

class handle {
 public:
  handle() noexcept = default;
  /// Adopts a reference that has been counted already.
  explicit handle(control_block* block) noexcept : block_(block) {}
  handle(const handle& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) retain(*block_);
  }
  handle(handle&& other) noexcept : block_(taken(other.block_)) {}
  handle& operator=(handle other) noexcept {
    block_ = taken(other.block_, block_);
    return *this;
  }
  ~handle() {
    if (block_ != nullptr) release(*block_);
  }

  control_block* get() const noexcept { return block_; }

 private:
  control_block* block_ = nullptr;
};

/// Returns: one more reference to `fiber`.
inline handle refer_to(control_block& fiber) noexcept {
  retain(fiber);
  return handle(&fiber);
}

}}}  // namespace motet::MOTET_ABI::detail
