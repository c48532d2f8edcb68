// SPDX-License-Identifier: MIT
// See detail/core/stop_scope.hpp and motet/cancellation/cancel_scope.hpp. A stop that is requested
// on another thread is looked at by the fiber's own, which finds the scope, if it is still there,
// among those that the fiber is in.
#include <motet/cancellation/cancel_scope.hpp>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/core/stop_scope.hpp>

#include "cancellation/asked.hpp"
#include "cancellation/pending_throw.hpp"
#include "cancellation/remote_verbs.hpp"
#include "core/hooks.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

stop_scope::stop_scope(std::stop_token token, call_site site, const cancel_reason* reason)
    : scope(site, "a stop was requested", &stop_requested_, reason),
      owner_(traveller_of(*fiber)),
      callback_(std::move(token), end_scope{this}) {}

void stop_scope::stop_requested() noexcept {
  thread_state* thread = self();
  const bool by_owner = thread != nullptr && &traveller_of(thread->running()) == &owner_;
  if (by_owner || (owner_.home == thread && !is_away(owner_))) {
    end();
  } else {
    stop_requested_.store(true, std::memory_order_release);
    look_for_stops(owner_);
  }
}

void end_stopped_scopes(control_block& fiber) noexcept {
  if (is_away(fiber)) return hooks.forward_stops(*journey_of_any(fiber));
  for (scope_entry* entry = fiber.scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind != scope_kind::ends) continue;
    auto& inner = static_cast<scope&>(*entry);
    const atomic<bool>* flag = inner.asked_remotely;
    if (flag != nullptr && flag->load(std::memory_order_acquire)) inner.end();
  }
}

}  // namespace detail

bool cancel_scope::cancel(const char* reason, call_site site) noexcept {
  if (stop_requested_.exchange(true)) return false;
  reason_ = detail::asked_here(reason, site);
  return source_.request_stop();
}

bool cancel_scope::caused(const cancelled& c) const noexcept {
  const detail::thread_state* thread = detail::self();
  if (thread == nullptr) return false;
  for (auto* entry = thread->running().scopes; entry != nullptr; entry = entry->outer) {
    if (entry->kind != detail::scope_kind::ends) continue;
    const auto& inner = static_cast<const detail::scope&>(*entry);
    if (inner.caused(c)) return inner.given_reason == &reason_;
  }
  return false;
}

}}  // namespace motet::MOTET_ABI
