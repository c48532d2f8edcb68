// SPDX-License-Identifier: MIT
// See cancellation/child_failures.hpp.
#include "cancellation/child_failures.hpp"

#include <motet/detail/core/handle.hpp>
#include <utility>

#include "cancellation/pending_throw.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

control_block* take_failure(control_block& parent, const family* group) noexcept {
  cold_part* part = cold_if_any(parent);
  if (part == nullptr) return nullptr;
  control_block** link = &part->failures;
  while (*link != nullptr && group != nullptr && (*link)->belongs_to != group) {
    link = &cold(**link).next_failure;
  }
  control_block* failure = *link;
  if (failure == nullptr) return nullptr;
  *link = std::exchange(cold(*failure).next_failure, nullptr);
  cold(*failure).reported_to = nullptr;
  return failure;
}

namespace {

void forget_failure(control_block& parent, control_block& child) noexcept {
  control_block** link = &cold(parent).failures;
  while (*link != &child) link = &cold(**link).next_failure;
  *link = std::exchange(cold(child).next_failure, nullptr);
  cold(child).reported_to = nullptr;
  refresh_failures(parent);
  release_at_home(child);
}

}  // namespace

void withdraw_failure(control_block& child) noexcept {
  cold_part* part = cold_if_any(child);
  if (part != nullptr && part->reported_to != nullptr) forget_failure(*part->reported_to, child);
}

void spare_proxy_of(const control_block& dead_child, const thread_core& thread) noexcept {
  control_block* parent = dead_child.parent;
  cold_part* part =
      parent != nullptr && thread.is_home_of(*parent) ? cold_if_any(*parent) : nullptr;
  if (part == nullptr) return;
  for (control_block* failure = part->failures; failure != nullptr;
       failure = cold(*failure).next_failure) {
    if (failure->error != dead_child.error) continue;
    // await() has just delivered the failure to a fiber of this thread, so the parent need not
    // receive it, even if it was woken for it.
    if (parent == &thread.running() || cold(*failure).reported_to != nullptr)
      forget_failure(*parent, *failure);
    return;
  }
  auto& children = part->own_family.children;
  for (control_block* child = children.front(); child != nullptr; child = children.next(*child)) {
    cold_part* proxy_part = cold_if_any(*child);
    if (proxy_part != nullptr && proxy_part->proxy_for == &dead_child) proxy_part->spared = true;
  }
}

std::exception_ptr take_error_of_child(control_block& parent) noexcept {
  control_block* child = take_failure(parent, nullptr);
  if (child == nullptr) return nullptr;
  std::exception_ptr error = child->error;
  refresh_failures(parent);
  release_at_home(*child);
  return error;
}

/// A failure that has ended the parent's wait belongs to the parent; nobody else can claim it.
void refresh_failures(control_block& fiber) noexcept {
  fiber.interrupts &= static_cast<std::uint8_t>(~interrupt_failure);
  const cold_part* part = cold_if_any(fiber);
  control_block* child = part == nullptr ? nullptr : part->failures;
  for (; child != nullptr; child = cold(*child).next_failure) {
    const family* group = child->belongs_to;
    const bool collected = group != nullptr && group->is_group && group->owner_wait != nullptr;
    if (collected) continue;
    if (interrupt_fiber(fiber, interrupt_failure)) cold(*child).reported_to = nullptr;
    return;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
