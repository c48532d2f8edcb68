// SPDX-License-Identifier: MIT
// See posix/locks/lock_in_fiber.hpp.
#include "posix/locks/lock_in_fiber.hpp"

#include "posix/locks/holders.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool await_holder(const lock_request& request, const lock_caller& caller, bool is_first) noexcept {
  thread_state& home = caller.home();
  const held_lock entry = caller.holders().entry_of(request.address);
  if (request.refuses_holder && entry.is_of(caller.fiber())) return false;
  if (!caller.may_wait()) {
    report_lock(home, "the thread blocks for ever", entry, request.call, request.site);
    return false;
  }
  if (is_first && caller.holders().leads_to(caller.fiber(), entry))
    report_lock(home, "deadlock", entry, request.call, request.site);
  caller.holders().await(request.address, request.call, request.due, home);
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
