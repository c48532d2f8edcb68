// SPDX-License-Identifier: MIT
// A counted reference to a control block: counted without a lock on the fiber's home thread.
#pragma once

#include <motet/detail/abi.hpp>
#include <utility>

namespace motet::inline MOTET_ABI::detail {

struct control_block;

class handle {
 public:
  handle() noexcept = default;
  /// Takes over a reference that has been counted.
  explicit handle(control_block* counted) noexcept : block_(counted) {}
  handle(const handle& other) noexcept : block_(other.block_) { retain(); }
  handle(handle&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  handle& operator=(handle other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~handle() { release(); }

  control_block* get() const noexcept { return block_; }

 private:
  void retain() const noexcept;
  void release() const noexcept;

  control_block* block_ = nullptr;
};

}  // namespace motet::inline MOTET_ABI::detail
