// SPDX-License-Identifier: MIT
// A traveller's visit to a fiber that serves an executor: it runs in a fiber made for that, so that
// interruptions, deadlines and children of the one are not the other's.
#pragma once

#include <motet/detail/heart/wait_record.hpp>
#include <utility>

#include "travel/journey.hpp"
#include "words/made_exception.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// In the frame of the function that the executor has called, until the visitor has left.
struct visit {
  const hop* by;
  thread_state* home;
  bool over = false;
  wait_record* waiting = nullptr;

  void end() noexcept {
    over = true;
    if (waiting != nullptr) home->resume(*waiting, wake_reason::handed);
  }
};

/// It could not go on where it wanted to.
void send_back(const hop& failed, std::exception_ptr why) noexcept;

/// What the fiber made for it runs. It may be ended before it has begun.
class visit_body {
 public:
  explicit visit_body(visit& what) noexcept : its_(&what) {}
  visit_body(const visit_body&) = delete;
  visit_body& operator=(const visit_body&) = delete;
  ~visit_body() {
    if (its_ == nullptr) return;
    send_back(*its_->by, made_exception<executor_stopped>());
    its_->end();
  }

  void operator()() noexcept {
    visit& its = *std::exchange(its_, nullptr);
    receive(*its.by, *its.home, &its);
  }

 private:
  visit* its_;
};

}}}  // namespace motet::MOTET_ABI::detail
