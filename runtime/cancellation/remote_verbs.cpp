// SPDX-License-Identifier: MIT
// See cancellation/remote_verbs.hpp. A fiber's foreign requests coalesce: of two exceptions the
// first counts, of two tokens the last, and the node is in the inbox at most once. Values that are
// displaced are not destroyed under the lock, nor in a poll.
#include "cancellation/remote_verbs.hpp"

#include <mutex>
#include <utility>

#include "cancellation/asked.hpp"
#include "cancellation/interrupt.hpp"
#include "cancellation/pending_throw.hpp"
#include "core/mail/ask.hpp"
#include "core/thread_state.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// The requests that other threads have made since the home thread last looked.
struct pending_requests {
  remote_requests batch;

  explicit pending_requests(control_block& fiber) noexcept {
    const std::lock_guard guard(fiber.mail->lock());
    remote_requests& requests = requests_of(fiber);
    requests.queued = false;
    batch.request_count = std::exchange(requests.request_count, std::uint8_t{0});
    batch.raise_at = std::exchange(requests.raise_at, std::uint8_t{0});
    batch.cancel_at = std::exchange(requests.cancel_at, std::uint8_t{0});
    batch.token_at = std::exchange(requests.token_at, std::uint8_t{0});
    batch.resume_at = std::exchange(requests.resume_at, std::uint8_t{0});
    batch.stop_at = std::exchange(requests.stop_at, std::uint8_t{0});
    batch.resumer_broken = requests.resumer_broken;
    if (batch.cancel_at != 0) batch.reason = requests.reason;
    batch.escalates = std::exchange(requests.escalates, false);
    batch.grace = requests.grace;
    batch.resume_number = std::exchange(requests.resume_number, 0);
    batch.raised = std::exchange(requests.raised, nullptr);
    batch.token = std::move(requests.token);
    batch.result = std::move(requests.result);
    batch.resumption = std::move(requests.resumption);
    fiber.references += std::exchange(requests.references, 0);
  }
};

/// Cancels the fiber. A result in the requests becomes the fiber's.
void do_cancel(control_block& fiber, remote_requests& requests) noexcept {
  if (requests.result.filled()) {
    give_result(fiber, requests.reason, std::move(requests.result));
  } else {
    cancel_here(fiber, requests.reason);
  }
  if (requests.escalates) terminate_here(fiber, requests.grace, requests.reason);
}

}  // namespace

void do_requests(post& item, thread_state& home) noexcept {
  control_block& fiber = *static_cast<remote_requests&>(item).fiber;
  remote_requests batch = pending_requests(fiber).batch;
  ++fiber.references;
  for (std::uint8_t ordinal = 1; ordinal <= batch.request_count; ++ordinal) {
    if (ordinal == batch.raise_at && raise_here(fiber, batch.raised)) batch.raised = nullptr;
    if (ordinal == batch.cancel_at) do_cancel(fiber, batch);
    if (ordinal == batch.stop_at) end_stopped_scopes(fiber);
    if (ordinal == batch.token_at) give_token(fiber, std::move(batch.token));
    if (ordinal == batch.resume_at) {
      resume_here(fiber, batch.resume_number, batch.resumer_broken, std::move(batch.resumption));
    }
  }
  // Tokens and exceptions that came too late, or were displaced.
  if (batch.raised != nullptr) {
    home.cleaner.destroy_later(
        value_slot::holding(undelivered(home.settings(), std::move(batch.raised))));
  }
  home.cleaner.destroy_later(std::move(batch.token));
  home.cleaner.destroy_later(std::move(batch.result));
  home.cleaner.destroy_later(std::move(batch.resumption));
  release_later(fiber);
}

namespace {

/// Gives a kind of request its ordinal, unless it has one.
void assign_ordinal(remote_requests& requests, std::uint8_t& ordinal) noexcept {
  if (ordinal == 0) ordinal = ++requests.request_count;
}

/// A function of its own, so that schedule() at home saves no registers.
[[gnu::noinline]] bool ask_to_schedule(control_block& fiber, value_slot& token) noexcept {
  if (fiber.dead()) return false;
  return ask(fiber, [&](remote_requests& requests) {
    assign_ordinal(requests, requests.token_at);
    std::swap(requests.token, token);  // the old one dies outside
    return true;
  });
}

}  // namespace

bool schedule(control_block& fiber, value_slot&& token) noexcept {
  return at_home(fiber) ? give_token(fiber, std::move(token)) : ask_to_schedule(fiber, token);
}

bool raise(control_block& fiber, std::exception_ptr error) noexcept {
  if (at_home(fiber)) return raise_here(fiber, std::move(error));
  if (fiber.dead()) return false;
  bool first = false;
  const bool success = ask(fiber, [&](remote_requests& requests) {
    first = requests.raised == nullptr;
    if (!first) return false;
    assign_ordinal(requests, requests.raise_at);
    requests.raised = std::move(error);
    return true;
  });
  return success && first;
}

namespace {

/// The first request's reason is kept; `change(requests, first)` adds the rest.
template <typename Change>
cancel_result ask_to_cancel(control_block& fiber, const cancel_reason& reason,
                            Change change) noexcept {
  if (fiber.dead()) return cancel_result::finished;
  bool first = false;
  const bool success = ask(fiber, [&](remote_requests& requests) {
    first = !std::exchange(requests.cancelled, true);
    if (first) requests.reason = reason;
    if (!change(requests, first)) return false;
    assign_ordinal(requests, requests.cancel_at);
    return true;
  });
  if (!success) return cancel_result::finished;
  return first ? cancel_result::accepted : cancel_result::already;
}

}  // namespace

cancel_result cancel(control_block& fiber, const cancel_reason& reason) noexcept {
  if (at_home(fiber)) return cancel_here(fiber, reason);
  return ask_to_cancel(fiber, reason, [](remote_requests&, bool first) { return first; });
}

cancel_result terminate(control_block& fiber, clock::duration grace,
                        const cancel_reason& reason) noexcept {
  if (at_home(fiber)) return terminate_here(fiber, grace, reason);
  const auto escalate = [&](remote_requests& requests, bool) {
    if (requests.escalates && requests.grace <= grace) return false;
    requests.escalates = true;
    requests.grace = grace;
    return true;
  };
  return ask_to_cancel(fiber, reason, escalate);
}

cancel_result stop(control_block& fiber, value_slot&& result, call_site site) noexcept {
  const cancel_reason reason = asked_here("it was stopped", site);
  if (at_home(fiber)) return give_result(fiber, reason, std::move(result));
  return ask_to_cancel(fiber, reason, [&](remote_requests& requests, bool first) {
    if (first) requests.result = std::move(result);
    return first;
  });
}

void look_for_stops(control_block& fiber) noexcept {
  ask(fiber, [](remote_requests& requests) {
    assign_ordinal(requests, requests.stop_at);
    return true;
  });
}

void resume_with(control_block& fiber, std::uint64_t number, bool failing,
                 value_slot&& value) noexcept {
  if (at_home(fiber)) {
    resume_here(fiber, number, failing, std::move(value));
    return;
  }
  if (fiber.dead()) return;
  ask(fiber, [&](remote_requests& requests) {
    if (number < requests.resume_number) return false;
    assign_ordinal(requests, requests.resume_at);
    requests.resume_number = number;
    requests.resumer_broken = failing;
    std::swap(requests.resumption, value);
    return true;
  });
}

}}}  // namespace motet::MOTET_ABI::detail
