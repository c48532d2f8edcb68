// SPDX-License-Identifier: MIT
// See interruption/asked.hpp.
#include "interruption/asked.hpp"

#include "heart/hooks.hpp"
#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: why `fiber` is to end, or the outermost part of its body that is; null: neither.
const cancel_reason* why_to_end(const control_block& fiber) noexcept {
  if (fiber.to_end) return &cold_if_any(fiber)->cancellation.why;
  const cancel_reason* outermost = nullptr;
  for (const scope_entry* each = fiber.scopes; each != nullptr; each = each->outer) {
    if (each->kind != scope_kind::ends) continue;
    const auto& entered = static_cast<const scope&>(*each);
    if (entered.ended) outermost = &entered.about.why;
  }
  return outermost;
}

}  // namespace

cancel_reason asked_by(control_block& asker, const char* text, call_site site) noexcept {
  const cancel_reason* own = why_to_end(asker);
  shared_reason* cause = own == nullptr ? nullptr : interruption::share(*own);
  return interruption::reason(text, site, identity_of(asker).id, cause);
}

cancel_reason asked_here(const char* text, call_site site) noexcept {
  if (text == nullptr) text = "";
  thread_state* thread = self();
  if (thread == nullptr) return interruption::reason(text, site);
  return asked_by(thread->running(), text, site);
}

}}}  // namespace motet::MOTET_ABI::detail
