// SPDX-License-Identifier: MIT
// See suspend.hpp. A fiber resumes only from the run queue of its own thread, hence not before it
// has parked: so `arrange` may run on the fiber's stack, once the wait is open.
#include <motet/fibers/suspend.hpp>
#include <stdexcept>

#include "cancellation/remote_verbs.hpp"
#include "core/resume_wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Lets a resumer find the wait by its number for as long as the frame lives.
class open_wait {
 public:
  explicit open_wait(control_block& fiber) noexcept : part_(cold(fiber)) {
    frame.wait.fiber = &fiber;
    frame.number = ++part_.resume_numbers;
    part_.resume = &frame;
  }
  open_wait(const open_wait&) = delete;
  open_wait& operator=(const open_wait&) = delete;
  ~open_wait() { part_.resume = nullptr; }

  resume_wait frame;

 private:
  cold_part& part_;
};

}  // namespace

answer::~answer() {
  if (fiber_.get() != nullptr) resume_with(*fiber_.get(), number_, true, value_slot());
}

void answer::check() const {
  if (fiber_.get() == nullptr) throw std::logic_error("resumer: called a second time");
}

void answer::give(value_slot&& value) noexcept {
  const handle fiber = std::move(fiber_);
  resume_with(*fiber.get(), number_, false, std::move(value));
}

value_slot suspend_until_answered(arrange_function arrange, void* callable) {
  thread_state& thread = here();
  thread.deliver();
  control_block& fiber = thread.running();
  if (cold(fiber).resume != nullptr) {
    throw std::logic_error("suspend_with(): called in the callable of another suspend_with()");
  }
  open_wait open(fiber);
  arrange(callable, refer_to(fiber), open.frame.number);
  if (open.frame.wait.ended() == wake_reason::handed) {
    thread.snooze();
  } else if (thread.park(open.frame.wait) == wake_reason::interrupted) {
    thread.throw_pending();
  }
  if (open.frame.broken) throw broken_resumer();
  return std::move(open.frame.value);
}

}}}  // namespace motet::MOTET_ABI::detail
