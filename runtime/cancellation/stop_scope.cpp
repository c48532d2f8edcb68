// SPDX-License-Identifier: MIT
// See detail/core/stop_scope.hpp and motet/cancellation/cancel_scope.hpp. A stop that is requested
// on another thread is looked at by the fiber's own, which finds the scope, if it is still there,
// among those that the fiber is in.
#include <motet/cancellation/cancel_scope.hpp>
#include <motet/detail/core/stop_scope.hpp>

#include "cancellation/asked.hpp"
#include "cancellation/pending_throw.hpp"
#include "cancellation/remote_verbs.hpp"
#include "core/hooks.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

stop_scope::stop_scope(std::stop_token token, call_site site, const cancel_reason* why)
    : scope(site, "a stop was requested", &asked_, why),
      owner_(traveller_of(*fiber)),
      callback_(std::move(token), end_scope{this}) {}

void stop_scope::stop_requested() noexcept {
  thread_state* here = self();
  const bool by_owner = here != nullptr && &traveller_of(here->running()) == &owner_;
  if (by_owner || (owner_.home == here && !is_away(owner_))) {
    end();
  } else {
    asked_.store(true, std::memory_order_release);
    look_for_stops(owner_);
  }
}

void end_stopped_scopes(control_block& fiber) noexcept {
  if (is_away(fiber)) return hooks.forward_stops(*journey_of_any(fiber));
  for (scope_entry* each = fiber.scopes; each != nullptr; each = each->outer) {
    if (each->kind != scope_kind::ends) continue;
    auto& entered = static_cast<scope&>(*each);
    const std::atomic<bool>* asked = entered.asked_remotely;
    if (asked != nullptr && asked->load(std::memory_order_acquire)) entered.end();
  }
}

}  // namespace detail

bool cancel_scope::cancel(const char* reason, call_site site) noexcept {
  if (asked_.exchange(true)) return false;
  why_ = detail::asked_here(reason, site);
  return source_.request_stop();
}

bool cancel_scope::caused(const cancelled& c) const noexcept {
  const detail::thread_state* thread = detail::self();
  if (thread == nullptr) return false;
  for (auto* each = thread->running().scopes; each != nullptr; each = each->outer) {
    if (each->kind != detail::scope_kind::ends) continue;
    const auto& entered = static_cast<const detail::scope&>(*each);
    if (entered.caused(c)) return entered.given == &why_;
  }
  return false;
}

}}  // namespace motet::MOTET_ABI
