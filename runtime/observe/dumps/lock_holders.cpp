// SPDX-License-Identifier: MIT
// See observe/dumps/lock_holders.hpp.
#include "observe/dumps/lock_holders.hpp"

#include <motet/detail/base/atomic.hpp>

#include "core/thread_state.hpp"
#include "platform/frames/peek.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Another thread may end this wait, and then the lock, at any moment.
/// Returns: 0 if the word cannot be read.
std::uintptr_t mark_in(const atomic<std::uintptr_t>* holder) noexcept {
  std::uintptr_t mark = 0;
  return peek(reinterpret_cast<const std::uintptr_t*>(holder), mark) ? mark : 0;
}

constexpr int bits_within_thread = 40;  // of a fiber's number

}  // namespace

std::optional<lock_holder> lock_holders::of(const wait_record& wait) {
  if (!wait.for_lock() || wait.ended() != wake_reason::none) return std::nullopt;
  const std::uintptr_t mark =
      wait.shared ? mark_in(wait.holder) : wait.holder->load(std::memory_order_relaxed);
  if (mark == 0) return std::nullopt;
  using kind = lock_holder::kind;
  if ((mark & 1) != 0) {
    return lock_holder{mark == (thread_.mark() | 1) ? kind::main_fiber : kind::other_thread};
  }
  const std::uint64_t id = mark >> 1;
  const control_block* block = find(id);
  const bool was_here =
      (id >> bits_within_thread) == (thread_.main_fiber().id >> bits_within_thread);
  return lock_holder{kind::fiber, id, block, was_here && block == nullptr};
}

const control_block* lock_holders::find(std::uint64_t id) {
  if (by_id_.empty()) {
    auto& fibers = thread_.fibers();
    for (auto* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
      by_id_.emplace(fiber->id, fiber);
    }
  }
  const auto entry = by_id_.find(id);
  return entry == by_id_.end() ? nullptr : entry->second;
}

}}}  // namespace motet::MOTET_ABI::detail
