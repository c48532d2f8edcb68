// SPDX-License-Identifier: MIT
// See cancellation/child_failures.hpp.
#include "cancellation/child_failures.hpp"

#include <motet/detail/core/handle.hpp>
#include <utility>

#include "cancellation/pending_throw.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

control_block* take_failure(control_block& parent, const family* from) noexcept {
  cold_part* part = cold_if_any(parent);
  if (part == nullptr) return nullptr;
  control_block** place = &part->failures;
  while (*place != nullptr && from != nullptr && (*place)->belongs_to != from) {
    place = &cold(**place).next_failure;
  }
  control_block* taken = *place;
  if (taken == nullptr) return nullptr;
  *place = std::exchange(cold(*taken).next_failure, nullptr);
  cold(*taken).reported_to = nullptr;
  return taken;
}

namespace {

void forget_failure(control_block& parent, control_block& failed) noexcept {
  control_block** place = &cold(parent).failures;
  while (*place != &failed) place = &cold(**place).next_failure;
  *place = std::exchange(cold(failed).next_failure, nullptr);
  cold(failed).reported_to = nullptr;
  refresh_failures(parent);
  release_at_home(failed);
}

}  // namespace

void withdraw_failure(control_block& failed) noexcept {
  cold_part* part = cold_if_any(failed);
  if (part != nullptr && part->reported_to != nullptr) forget_failure(*part->reported_to, failed);
}

void spare_proxy_of(const control_block& failed, const thread_core& thread) noexcept {
  control_block* parent = failed.parent;
  cold_part* part =
      parent != nullptr && thread.is_home_of(*parent) ? cold_if_any(*parent) : nullptr;
  if (part == nullptr) return;
  for (control_block* failure = part->failures; failure != nullptr;
       failure = cold(*failure).next_failure) {
    if (failure->error != failed.error) continue;
    // await() has just delivered the failure to a fiber of this thread, so the parent need not
    // receive it, even if it was woken for it.
    if (parent == &thread.running() || cold(*failure).reported_to != nullptr)
      forget_failure(*parent, *failure);
    return;
  }
  auto& children = part->own_family.children;
  for (control_block* each = children.front(); each != nullptr; each = children.next(*each)) {
    cold_part* proxy_part = cold_if_any(*each);
    if (proxy_part != nullptr && proxy_part->proxy_for == &failed) proxy_part->spared = true;
  }
}

std::exception_ptr take_error_of_child(control_block& parent) noexcept {
  control_block* failed = take_failure(parent, nullptr);
  if (failed == nullptr) return nullptr;
  std::exception_ptr error = failed->error;
  refresh_failures(parent);
  release_at_home(*failed);
  return error;
}

/// A failure that has ended the parent's wait belongs to the parent; nobody else can claim it.
void refresh_failures(control_block& fiber) noexcept {
  fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_failure);
  const cold_part* part = cold_if_any(fiber);
  control_block* failed = part == nullptr ? nullptr : part->failures;
  for (; failed != nullptr; failed = cold(*failed).next_failure) {
    const family* from = failed->belongs_to;
    const bool collected = from != nullptr && from->is_group && from->owner_wait != nullptr;
    if (collected) continue;
    if (interrupt_fiber(fiber, interrupt_failure)) cold(*failed).reported_to = nullptr;
    return;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
