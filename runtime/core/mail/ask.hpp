// SPDX-License-Identifier: MIT
// How another thread sends a request to a fiber.
#pragma once

#include <motet/detail/base/race_point.hpp>
#include <mutex>

#include "core/event_recorder.hpp"
#include "core/hooks.hpp"
#include "core/mail/remote_requests.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Calls `change(requests)` under the lock and, if that returns true, sees to it that the home
/// thread looks.
/// Returns: false if the fiber's thread has ended.
template <typename Change>
bool ask(control_block& fiber, Change change) noexcept {
  race_point();
  mailbox::deferred_wake wake;
  const std::lock_guard guard(fiber.mail->lock());
  if (fiber.mail->closed()) return false;
  remote_requests& requests = requests_of(fiber);
  if (!change(requests) || requests.queued) return true;
  requests.queued = true;
  note_post(fiber);
  requests.handle_post = hooks.do_requests;
  return wake.push(*fiber.mail, requests);
}

}}}  // namespace motet::MOTET_ABI::detail
