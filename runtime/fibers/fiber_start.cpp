// SPDX-License-Identifier: MIT
// What a fiber may spin, and when: see motet/detail/fibers/fiber_start.hpp.
#include <cstdio>
#include <cstdlib>
#include <motet/fibers/fiber.hpp>
#include <new>
#include <stdexcept>
#include <utility>

#include "cancellation/pending_throw.hpp"
#include "core/store/make_fiber.hpp"
#include "core/thread_state.hpp"
#include "fibers/family.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

void describe(control_block& fiber, spin_options& settings) noexcept {
  fiber.transient = settings.transient;
  if (settings.name.empty()) return;
  cold(fiber).name = std::move(settings.name);
  fiber.named = true;
}

[[noreturn, gnu::noinline]] void refuse_to_spin(const thread_state& thread) {
  if (thread.foreign) throw std::logic_error("spin(): not possible on a foreign thread");
  interruption::throw_cancelled(interruption::reason("its parent is ending"));
}

control_block& make_in(thread_state& thread, family& group, spin_options* settings,
                       const body_kind& kind, call_site site) {
  control_block& spinner = thread.running();
  if (group.closed) refuse_to_spin(thread);
  if (spinner.to_end_for != nullptr && !in_shield(spinner)) throw_cancellation(thread);
  const std::size_t usual = thread.settings().stack_size;
  control_block& fiber =
      make_fiber(thread, group, kind, site,
                 settings == nullptr ? usual : settings->stack_size.value_or(usual));
  if (settings != nullptr) describe(fiber, *settings);
  return fiber;
}

/// The copy or move constructor of a callable may wait, but not teleport.
void check_still_at(const thread_core& home) noexcept {
  if (self_core() == &home) return;
  std::fputs("motet: a fiber went to another thread while it copied or moved what it spins\n",
             stderr);
  std::abort();
}

/// A copy of an inherited local may throw, or wait: all are made before the family is checked.
[[gnu::noinline]] control_block& make_with_copies(thread_state& thread, family& group,
                                                  spin_options* settings, const body_kind& kind,
                                                  call_site site) {
  if (group.closed) refuse_to_spin(thread);
  const handle owner = refer_to(*group.owner);
  local_list copies = cold(thread.running()).locals.copies();
  check_still_at(thread);
  if (!stands(*owner.get(), group)) refuse_to_spin(thread);
  control_block& fiber = make_in(thread, group, settings, kind, site);
  cold(fiber).locals = std::move(copies);
  return fiber;
}

}  // namespace

family* children_of_main() {
  family& children = children_of_main(here());
  return children.closed ? nullptr : &children;
}

[[gnu::flatten]] control_block& fiber_start::make(family* parents, spin_options* settings,
                                                  const body_kind& kind, call_site site) {
  thread_state& thread = here();
  control_block& spinner = thread.running();
  cold_part* part = parents == nullptr ? &cold(spinner) : cold_if_any(spinner);
  family& group = parents == nullptr ? part->own_family : *parents;
  if (part != nullptr && part->locals.has_values()) [[unlikely]]
    return make_with_copies(thread, group, settings, kind, site);
  return make_in(thread, group, settings, kind, site);
}

void fiber_start::look_again() {
  control_block& fiber = *block_;
  check_still_at(*fiber.home);
  thread_state& thread = home_of(fiber);
  const bool forked = fiber.mail != &thread.mail();
  const bool orphaned = forked && fiber.parent != &thread.running();
  if (orphaned || !stands(*fiber.parent, *fiber.belongs_to)) {
    if (fiber.kind->destroy_body != nullptr) fiber.kind->destroy_body(fiber.body);
    refuse_to_spin(thread);
  }
  if (!forked) return;
  fiber.mail = &thread.mail();
  ++fiber.mail->blocks;
}

void fiber_start::unmake() noexcept {
  check_still_at(*block_->home);
  unmake_fiber(*block_);
}

}}}  // namespace motet::MOTET_ABI::detail
