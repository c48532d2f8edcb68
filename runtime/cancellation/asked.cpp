// SPDX-License-Identifier: MIT
// See cancellation/asked.hpp.
#include "cancellation/asked.hpp"

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: what was thrown last in `fiber`, of a cancellation and the scopes that have ended, if
///          that is not over; else the cancellation, or the outermost of these scopes; or null.
lasting_interruption* end_of(const control_block& fiber) noexcept {
  cold_part* part = cold_if_any(fiber);
  lasting_interruption* outermost = fiber.to_end_for != nullptr ? &part->cancellation : nullptr;
  for (scope_entry* entry = fiber.scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind != scope_kind::ends) continue;
    auto& limit = static_cast<scope&>(*entry);
    if (!limit.ended) continue;
    if (part != nullptr && limit.cause.id == part->thrown_last) return &limit.cause;
    if (fiber.to_end_for == nullptr) outermost = &limit.cause;
  }
  return outermost;
}

}  // namespace

cancel_reason asked_by(control_block& asker, const char* text, call_site site) noexcept {
  const cold_part* part = cold_if_any(asker);
  if (asker.to_end_for != nullptr && part->is_proxy) return *asker.to_end_for;
  lasting_interruption* ending = end_of(asker);
  if (ending != nullptr && !ending->as_cause)
    ending->as_cause = interruption::share(ending->reason);
  return interruption::reason(text, site, traveller_of(asker).id,
                              ending == nullptr ? shared_cause() : ending->as_cause);
}

cancel_reason asked_here(const char* text, call_site site) noexcept {
  if (text == nullptr) text = "";
  thread_state* thread = self();
  if (thread == nullptr) return interruption::reason(text, site);
  return asked_by(thread->running(), text, site);
}

}}}  // namespace motet::MOTET_ABI::detail
