// SPDX-License-Identifier: MIT
// See fibers/remote_fiber.hpp: what a guest's thread tells the thread that asked for it.
#include "fibers/remote_fiber.hpp"

#include <motet/base/errors.hpp>
#include <motet/detail/base/race_point.hpp>
#include <utility>

#include "base/made_exception.hpp"
#include "cancellation/interrupt.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool remote_link::call_off_before_it_begins() noexcept {
  progress expectation = progress::asked_for;
  return stage.compare_exchange_strong(expectation, progress::called_off) ||
         expectation == progress::called_off;
}

std::exception_ptr stopped() noexcept {
  return made_exception<executor_stopped>();
}

/// Called when `fiber` has been made; it will run when its turn comes.
void remote_job::begin(control_block& fiber) noexcept {
  if (parent != nullptr) {
    release_at_home(*fiber.parent);
    fiber.parent = parent;
  }
  if (!inherited_locals.empty()) cold(fiber).locals = std::move(inherited_locals);
  if (link != nullptr) {
    cold(fiber).caller = link;
    link->fiber = refer_to(fiber);
    race_point();
    auto expectation = remote_link::progress::asked_for;
    if (!link->stage.compare_exchange_strong(expectation, remote_link::progress::begun)) {
      cancel_here(fiber, interruption::reason("it was called off"));
    }
  }
  if (beginning != nullptr) {
    beginning->fiber = refer_to(fiber);
    beginning->completion.end();
  }
}

void remote_job::refuse(std::exception_ptr reason) noexcept {
  remote_link* ending = link;
  remote_start* start = beginning;
  if (parent != nullptr) detail::release(*parent);
  dispose();
  if (start != nullptr) {
    start->refused = std::move(reason);
    start->completion.end();
  } else if (ending != nullptr) {
    ending->refused = std::move(reason);
    ending->completion.end();
  }
}

void notify_caller(control_block& fiber, bool failure_is_claimed) noexcept {
  remote_link& link = *std::exchange(cold(fiber).caller, nullptr);
  link.failed = fiber.ended_by == outcome::error && !failure_is_claimed;
  link.completion.end();
}

}}}  // namespace motet::MOTET_ABI::detail
