// SPDX-License-Identifier: MIT
// A traveller's visit to a fiber that serves an executor. The traveller runs in a fiber made for
// the visit, so that the interruptions, deadlines and children of the two fibers do not mix.
#pragma once

#include <motet/detail/core/wait_record.hpp>
#include <utility>

#include "base/made_exception.hpp"
#include "migration/journey.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// One visit, in the frame of the function that the executor has called, until the traveller has
/// left.
struct visit {
  const migration_attempt* attempt;
  thread_state* home;
  bool ended = false;
  wait_record* waiter = nullptr;

  void end() noexcept {
    ended = true;
    if (waiter != nullptr) home->resume(*waiter, wake_reason::handed);
  }
};

/// Sends the traveller of `attempt` back to where the attempt began, and throws `error` in it
/// there.
void send_back(const migration_attempt& attempt, std::exception_ptr error) noexcept;

/// The body of the fiber made for a visit. That fiber may be ended before the body has begun.
class visit_body {
 public:
  explicit visit_body(visit& stay) noexcept : stay_(&stay) {}
  visit_body(const visit_body&) = delete;
  visit_body& operator=(const visit_body&) = delete;
  ~visit_body() {
    if (stay_ == nullptr) return;
    send_back(*stay_->attempt, made_exception<executor_stopped>());
    stay_->end();
  }

  void operator()() noexcept {
    visit& stay = *std::exchange(stay_, nullptr);
    receive(*stay.attempt, *stay.home, &stay);
  }

 private:
  visit* stay_;
};

}}}  // namespace motet::MOTET_ABI::detail
