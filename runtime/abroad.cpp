// SPDX-License-Identifier: MIT
// See abroad.hpp. A fiber's foreign requests coalesce: of two exceptions the first counts, of two
// tokens the last, and the node is in the inbox at most once.
#include "abroad.hpp"

#include <mutex>
#include <utility>

#include "jitter.hpp"
#include "thread_state.hpp"

namespace motet::detail {

namespace {

bool at_home(const control_block& fiber) noexcept {
  const thread_state* thread = self();
  return thread != nullptr && &const_cast<thread_state*>(thread)->mail() == fiber.mail;
}

/// Does what has been asked for from abroad.
void arrive(post& item, thread_state& home) noexcept {
  auto& asked = static_cast<foreign_requests&>(item);
  control_block& fiber = *asked.fiber;
  foreign_requests now;
  {
    const std::lock_guard guard(fiber.mail->lock());
    asked.queued = false;
    now.cancel = std::exchange(asked.cancel, false);
    now.token_is_result = std::exchange(asked.token_is_result, false);
    now.cancel_reason = asked.cancel_reason;
    now.raised = std::exchange(asked.raised, nullptr);
    now.token = std::move(asked.token);
    now.resume_number = std::exchange(asked.resume_number, 0);
    now.resumer_broken = asked.resumer_broken;
    now.resumed = std::move(asked.resumed);
    fiber.references += std::exchange(asked.references, 0);
  }
  ++fiber.references;
  if (now.raised != nullptr) home.raise(fiber, std::move(now.raised));
  if (now.cancel && now.token_is_result) {
    home.give_result(fiber, now.cancel_reason, std::move(now.token));
    now.token.reset();  // too late: the value is nobody's
  } else if (now.cancel) {
    home.cancel(fiber, now.cancel_reason);
  }
  if (now.token.filled()) home.give_token(fiber, std::move(now.token));
  if (now.resume_number != 0) {
    home.resume_with(fiber, now.resume_number, now.resumer_broken, std::move(now.resumed));
  }
  home.release(fiber);
}

/// Calls `change(requests)` under the lock and, if that returns true, sees to it that the home
/// thread looks.
/// Returns: false if the fiber's thread has ended.
template <typename Change>
bool ask(control_block& fiber, Change change) noexcept {
  jitter();
  const std::lock_guard guard(fiber.mail->lock());
  if (fiber.mail->closed()) return false;
  fiber.went_abroad.store(true, std::memory_order_relaxed);
  foreign_requests& requests = fiber.abroad;
  if (!change(requests) || requests.queued) return true;
  requests.queued = true;
  requests.arrive = &arrive;
  return fiber.mail->push_locked(requests);
}

}  // namespace

void retain(control_block& fiber) noexcept {
  if (at_home(fiber)) {
    self()->retain(fiber);
    return;
  }
  const std::lock_guard guard(fiber.mail->lock());
  fiber.went_abroad.store(true, std::memory_order_relaxed);
  ++fiber.abroad.references;
}

void release(control_block& fiber) noexcept {
  if (at_home(fiber)) {
    self()->release(fiber);
    return;
  }
  const auto drop = [](foreign_requests& requests) {
    --requests.references;
    return true;
  };
  if (!ask(fiber, drop)) release_after_end(fiber);
}

bool schedule(control_block& fiber, value_slot&& token) noexcept {
  if (at_home(fiber)) return self()->give_token(fiber, std::move(token));
  if (fiber.dead()) return false;
  return ask(fiber, [&](foreign_requests& requests) {
    if (!requests.token_is_result) std::swap(requests.token, token);  // old one dies outside
    return true;
  });
}

bool raise(control_block& fiber, std::exception_ptr error) noexcept {
  if (at_home(fiber)) return self()->raise(fiber, std::move(error));
  if (fiber.dead()) return false;
  bool first = false;
  const bool asked = ask(fiber, [&](foreign_requests& requests) {
    first = requests.raised == nullptr;
    if (first) requests.raised = std::move(error);
    return first;
  });
  return asked && first;
}

namespace {

cancel_result ask_to_cancel(control_block& fiber, const char* reason, value_slot* result) noexcept {
  if (fiber.dead()) return cancel_result::finished;
  bool first = false;
  const bool asked = ask(fiber, [&](foreign_requests& requests) {
    first = !requests.cancel && requests.cancel_reason == nullptr;
    if (!first) return false;
    requests.cancel = true;
    requests.cancel_reason = reason;
    if (result != nullptr) {
      requests.token = std::move(*result);
      requests.token_is_result = true;
    }
    return true;
  });
  if (!asked) return cancel_result::finished;
  return first ? cancel_result::accepted : cancel_result::already;
}

}  // namespace

cancel_result cancel(control_block& fiber, const char* reason) noexcept {
  if (at_home(fiber)) return self()->cancel(fiber, reason);
  return ask_to_cancel(fiber, reason, nullptr);
}

cancel_result stop(control_block& fiber, value_slot&& result) noexcept {
  constexpr const char* reason = "it was stopped";
  if (at_home(fiber)) return self()->give_result(fiber, reason, std::move(result));
  return ask_to_cancel(fiber, reason, &result);
}

void resume_with(control_block& fiber, std::uint64_t number, bool broken,
                 value_slot&& value) noexcept {
  if (at_home(fiber)) {
    self()->resume_with(fiber, number, broken, std::move(value));
    return;
  }
  if (fiber.dead()) return;
  ask(fiber, [&](foreign_requests& requests) {
    if (number < requests.resume_number) return false;
    requests.resume_number = number;
    requests.resumer_broken = broken;
    std::swap(requests.resumed, value);
    return true;
  });
}

}  // namespace motet::detail
