// SPDX-License-Identifier: MIT
// sem_wait(3) and its relatives.
#include <semaphore.h>
#include <time.h>

#include <cerrno>
#include <optional>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/pauses.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// A semaphore with a time limit does not restart a call, in spite of signal(7). A fiber of the
/// same thread may be about to post: so the first attempts are a turn apart.
int wait_in_fiber(thread_state& home, sem_t* semaphore, clock::time_point due) noexcept {
  const auto attempt = [&]() -> std::optional<int> {
    if (::sem_trywait(semaphore) == 0) return 0;
    if (errno != EAGAIN) return -1;
    return due != no_limit && home.time.now() >= due ? std::optional(fail(ETIMEDOUT))
                                                     : std::nullopt;
  };
  if (const std::optional<int> result = attempt()) return *result;
  if (const int error = pending_error(home); error != 0) return fail(error);
  for (int i = 0; i < 4; ++i) {
    home.snooze();
    if (const std::optional<int> result = attempt()) return *result;
  }
  return call_with_pauses(home, effect_with(due), attempt, due).value_or(-1);
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int sem_wait(sem_t* semaphore) {
  const fiber_call call;
  if (!call.may_wait()) return libc.sem_wait(semaphore);
  return call.result(wait_in_fiber(call.home(), semaphore, no_limit));
}

int sem_clockwait(sem_t* semaphore, clockid_t id, const timespec* limit) {
  const fiber_call call;
  if (!is_usual_limit(id, limit) || !call.may_wait())
    return libc.sem_clockwait(semaphore, id, limit);
  return call.result(wait_in_fiber(call.home(), semaphore, due_at(call.home(), id, *limit)));
}

int sem_timedwait(sem_t* semaphore, const timespec* limit) {
  return ::sem_clockwait(semaphore, CLOCK_REALTIME, limit);
}

}  // extern "C"
