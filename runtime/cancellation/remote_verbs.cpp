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
struct requests_taken {
  remote_requests taken;

  explicit requests_taken(control_block& fiber) noexcept {
    const std::lock_guard guard(fiber.mail->lock());
    remote_requests& from = requests_of(fiber);
    from.queued = false;
    taken.asked = std::exchange(from.asked, std::uint8_t{0});
    taken.raise_at = std::exchange(from.raise_at, std::uint8_t{0});
    taken.cancel_at = std::exchange(from.cancel_at, std::uint8_t{0});
    taken.token_at = std::exchange(from.token_at, std::uint8_t{0});
    taken.resume_at = std::exchange(from.resume_at, std::uint8_t{0});
    taken.stop_at = std::exchange(from.stop_at, std::uint8_t{0});
    taken.resumer_broken = from.resumer_broken;
    if (taken.cancel_at != 0) taken.why = from.why;
    taken.escalates = std::exchange(from.escalates, false);
    taken.grace = from.grace;
    taken.resume_number = std::exchange(from.resume_number, 0);
    taken.raised = std::exchange(from.raised, nullptr);
    taken.token = std::move(from.token);
    taken.result = std::move(from.result);
    taken.resumed = std::move(from.resumed);
    fiber.references += std::exchange(from.references, 0);
  }
};

/// Cancels the fiber. A result in the requests becomes the fiber's.
void do_cancel(control_block& fiber, remote_requests& requests) noexcept {
  if (requests.result.filled()) {
    give_result(fiber, requests.why, std::move(requests.result));
  } else {
    cancel_here(fiber, requests.why);
  }
  if (requests.escalates) terminate_here(fiber, requests.grace, requests.why);
}

}  // namespace

void do_requests(post& item, thread_state& home) noexcept {
  control_block& fiber = *static_cast<remote_requests&>(item).fiber;
  remote_requests now = requests_taken(fiber).taken;
  ++fiber.references;
  for (std::uint8_t place = 1; place <= now.asked; ++place) {
    if (place == now.raise_at && raise_here(fiber, now.raised)) now.raised = nullptr;
    if (place == now.cancel_at) do_cancel(fiber, now);
    if (place == now.stop_at) end_stopped_scopes(fiber);
    if (place == now.token_at) give_token(fiber, std::move(now.token));
    if (place == now.resume_at) {
      resume_here(fiber, now.resume_number, now.resumer_broken, std::move(now.resumed));
    }
  }
  // Tokens and exceptions that came too late, or were displaced.
  if (now.raised != nullptr) {
    home.cleaner.destroy_later(
        value_slot::holding(undelivered(home.settings(), std::move(now.raised))));
  }
  home.cleaner.destroy_later(std::move(now.token));
  home.cleaner.destroy_later(std::move(now.result));
  home.cleaner.destroy_later(std::move(now.resumed));
  release_later(fiber);
}

namespace {

/// Gives a kind of request its place, unless it has one.
void ask_in_turn(remote_requests& requests, std::uint8_t& place) noexcept {
  if (place == 0) place = ++requests.asked;
}

}  // namespace

bool schedule(control_block& fiber, value_slot&& token) noexcept {
  if (at_home(fiber)) return give_token(fiber, std::move(token));
  if (fiber.dead()) return false;
  return ask(fiber, [&](remote_requests& requests) {
    ask_in_turn(requests, requests.token_at);
    std::swap(requests.token, token);  // the old one dies outside
    return true;
  });
}

bool raise(control_block& fiber, std::exception_ptr error) noexcept {
  if (at_home(fiber)) return raise_here(fiber, std::move(error));
  if (fiber.dead()) return false;
  bool first = false;
  const bool asked = ask(fiber, [&](remote_requests& requests) {
    first = requests.raised == nullptr;
    if (!first) return false;
    ask_in_turn(requests, requests.raise_at);
    requests.raised = std::move(error);
    return true;
  });
  return asked && first;
}

namespace {

/// The first request's reason is kept; `change(requests, first)` adds the rest.
template <typename Change>
cancel_result ask_to_cancel(control_block& fiber, const cancel_reason& why,
                            Change change) noexcept {
  if (fiber.dead()) return cancel_result::finished;
  bool first = false;
  const bool asked = ask(fiber, [&](remote_requests& requests) {
    first = !std::exchange(requests.cancelled, true);
    if (first) requests.why = why;
    if (!change(requests, first)) return false;
    ask_in_turn(requests, requests.cancel_at);
    return true;
  });
  if (!asked) return cancel_result::finished;
  return first ? cancel_result::accepted : cancel_result::already;
}

}  // namespace

cancel_result cancel(control_block& fiber, const cancel_reason& why) noexcept {
  if (at_home(fiber)) return cancel_here(fiber, why);
  return ask_to_cancel(fiber, why, [](remote_requests&, bool first) { return first; });
}

cancel_result terminate(control_block& fiber, clock::duration grace,
                        const cancel_reason& why) noexcept {
  if (at_home(fiber)) return terminate_here(fiber, grace, why);
  const auto escalate = [&](remote_requests& requests, bool) {
    if (requests.escalates && requests.grace <= grace) return false;
    requests.escalates = true;
    requests.grace = grace;
    return true;
  };
  return ask_to_cancel(fiber, why, escalate);
}

cancel_result stop(control_block& fiber, value_slot&& result, call_site site) noexcept {
  const cancel_reason why = asked_here("it was stopped", site);
  if (at_home(fiber)) return give_result(fiber, why, std::move(result));
  return ask_to_cancel(fiber, why, [&](remote_requests& requests, bool first) {
    if (first) requests.result = std::move(result);
    return first;
  });
}

void look_for_stops(control_block& fiber) noexcept {
  ask(fiber, [](remote_requests& requests) {
    ask_in_turn(requests, requests.stop_at);
    return true;
  });
}

void resume_with(control_block& fiber, std::uint64_t number, bool broken,
                 value_slot&& value) noexcept {
  if (at_home(fiber)) {
    resume_here(fiber, number, broken, std::move(value));
    return;
  }
  if (fiber.dead()) return;
  ask(fiber, [&](remote_requests& requests) {
    if (number < requests.resume_number) return false;
    ask_in_turn(requests, requests.resume_at);
    requests.resume_number = number;
    requests.resumer_broken = broken;
    std::swap(requests.resumed, value);
    return true;
  });
}

}}}  // namespace motet::MOTET_ABI::detail
