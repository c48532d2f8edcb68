// SPDX-License-Identifier: MIT
// pthread_join(3) and its relatives. Interruptions do not end them: a caller that ignores the
// result would go on to destroy what the thread uses.
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <motet/detail/core/internal_shield.hpp>
#include <optional>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/pauses.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// A thread that joins itself is the C library's business.
bool waits_in_fiber(const fiber_call& call, pthread_t thread) noexcept {
  return call.may_wait() && ::pthread_equal(thread, ::pthread_self()) == 0;
}

/// A thread that has just left its last function takes a moment to end.
/// Returns: 0 or an error, as pthread_clockjoin_np(3).
int join_in_fiber(thread_state& home, pthread_t thread, void** result,
                  clock::time_point due) noexcept {
  const internal_shield shield;
  constexpr timespec long_ago{};
  const auto attempt = [&]() -> std::optional<int> {
    const int error = libc.pthread_clockjoin_np(thread, result, CLOCK_MONOTONIC, &long_ago);
    if (error != ETIMEDOUT) return error;
    return due != no_limit && home.time.now() >= due ? std::optional(ETIMEDOUT) : std::nullopt;
  };
  for (int i = 0; i < 4; ++i) {
    if (const std::optional<int> error = attempt()) return *error;
    home.snooze();
  }
  return call_with_pauses(home, on_signal::go_on, attempt, due).value_or(EINVAL);
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int pthread_join(pthread_t thread, void** result) {
  const fiber_call call;
  if (!waits_in_fiber(call, thread)) return libc.pthread_join(thread, result);
  return join_in_fiber(call.home(), thread, result, no_limit);
}

int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t id, const timespec* limit) {
  const fiber_call call;
  if (!is_usual_limit(id, limit) || !waits_in_fiber(call, thread))
    return libc.pthread_clockjoin_np(thread, result, id, limit);
  return join_in_fiber(call.home(), thread, result, due_at(call.home(), id, *limit));
}

int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* limit) {
  return ::pthread_clockjoin_np(thread, result, CLOCK_REALTIME, limit);
}

/// A thread of C11 returns an int.
int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  if (::pthread_join(thread, &value) != 0) return thrd_error;
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return thrd_success;
}

}  // extern "C"
