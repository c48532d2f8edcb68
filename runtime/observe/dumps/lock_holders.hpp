// SPDX-License-Identifier: MIT
// Who holds the locks that the fibers of a thread wait for.
#pragma once

#include <cstdint>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <optional>
#include <unordered_map>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

struct lock_holder {
  enum class kind : std::uint8_t {
    fiber,         // with that number; `block` is null if it is not on the thread
    main_fiber,    // of the thread
    other_thread,  // or the main fiber of one
  } type;
  std::uint64_t id = 0;
  const control_block* block = nullptr;
  bool ended = false;  // it was a fiber of the thread
};

class lock_holders {
 public:
  explicit lock_holders(thread_state& thread) noexcept : thread_(thread) {}

  /// Returns: std::nullopt if `wait` is not for a lock, or the lock is being handed over.
  /// Throws: std::bad_alloc.
  std::optional<lock_holder> of(const wait_record& wait);

 private:
  const control_block* find(std::uint64_t id);

  thread_state& thread_;
  std::unordered_map<std::uint64_t, const control_block*> by_id_;  // filled when it is needed
};

}}}  // namespace motet::MOTET_ABI::detail
