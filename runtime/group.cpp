// SPDX-License-Identifier: MIT
// Groups: a family that its owner can wait for, and end.
#include <motet/group.hpp>
#include <stdexcept>

#include "thread_state.hpp"

namespace motet::inline MOTET_ABI {

group::group() {
  family_.one_fails_all_fail = true;
  detail::here().enter_owner(family_);
}

group::~group() {
  if (family_.owner == nullptr) return;
  detail::thread_state& thread = home_of(*family_.owner);
  family_.closed = true;
  thread.leave_to_owner(family_);
  thread.cancel_family(family_, "its group has ended");
  thread.await_family(family_, true, false);
  thread.leave_owner(family_);
}

void group::check_thread() const {
  if (family_.owner != nullptr && family_.owner->home != detail::self()) {
    throw std::logic_error("a group belongs to the thread of its owner");
  }
}

void group::await_all() {
  detail::thread_state& thread = detail::here();
  if (family_.owner != &thread.running()) {
    throw std::logic_error("only its owner can await a group");
  }
  if (thread.await_family(family_, false, true) != detail::wake_reason::handed) {
    thread.throw_pending();
  }
  detail::control_block* failed = thread.take_failure(thread.running(), &family_);
  if (failed == nullptr) {
    thread.deliver();
    return;
  }
  const std::exception_ptr error = failed->error;
  thread.release(*failed);
  while (auto* also = thread.take_failure(thread.running(), &family_)) thread.release(*also);
  thread.refresh_failures(thread.running());
  std::rethrow_exception(error);
}

void group::cancel(const char* reason, call_site site) {
  check_thread();
  detail::here().cancel_family(family_, reason == nullptr ? "" : reason, site);
}

}  // namespace motet::inline MOTET_ABI
