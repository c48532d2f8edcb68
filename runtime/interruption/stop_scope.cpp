// SPDX-License-Identifier: MIT
// See detail/heart/stop_scope.hpp. A stop that is requested on another thread is looked at by the
// fiber's own, which finds the scope, if it is still there, among those that the fiber is in.
#include <motet/detail/heart/stop_scope.hpp>

#include "heart/travel_hooks.hpp"
#include "interruption/remote_verbs.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

stop_scope::stop_scope(std::stop_token token, call_site site)
    : scope(site, "a stop was requested", &asked_),
      whose_(identity_of(*fiber_)),
      callback_(std::move(token), end_scope{this}) {}

void stop_scope::stop_requested() noexcept {
  thread_state* here = self();
  const bool own = here != nullptr && &identity_of(here->running()) == &whose_;
  if (own || (whose_.home == here && !is_away(whose_))) {
    end();
  } else {
    asked_.store(true, std::memory_order_release);
    look_for_stops(whose_);
  }
}

void thread_state::end_stopped_scopes(control_block& fiber) noexcept {
  if (is_away(fiber)) return forward_stops(fiber);
  for (scope_entry* each = fiber.scopes; each != nullptr; each = each->outer_) {
    if (each->kind_ != scope_kind::ends) continue;
    auto& entered = static_cast<scope&>(*each);
    const std::atomic<bool>* asked = entered.asked_abroad_;
    if (asked != nullptr && asked->load(std::memory_order_acquire)) entered.end();
  }
}

/// Tells those inside of what is about to be thrown, up to the scope that has ended; null: all.
void thread_state::announce_up_to(const scope* ended) noexcept {
  control_block& fiber = *running_;
  ++fiber.shields;
  for (scope_entry* each = fiber.scopes; each != nullptr && each != ended; each = each->outer_) {
    if (each->kind_ == scope_kind::announces) static_cast<announcing_scope*>(each)->announce();
  }
  --fiber.shields;
}

}}}  // namespace motet::MOTET_ABI::detail
