// SPDX-License-Identifier: MIT
// mq_receive(3), mq_send(3) and their relatives. On Linux a queue is a descriptor; a call whose
// time limit has passed does not wait.
#include <mqueue.h>
#include <poll.h>
#include <sys/types.h>
#include <time.h>

#include <cerrno>
#include <cstddef>

#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

/// Calls `attempt(limit)` with a limit that has passed, until it does not fail for that.
template <typename Attempt>
auto move_message(thread_state& home, mqd_t queue, short events, clock::time_point due,
                  Attempt attempt) noexcept -> decltype(attempt(nullptr)) {
  constexpr timespec past{};
  const signal_start start(on_signal::restart);
  const noted_use use(home, queue);
  for (;;) {
    const auto result = attempt(&past);
    if (result >= 0 || errno != ETIMEDOUT || home.time.now() >= due) return result;
    const std::int32_t error = await_ready(home, queue, events, "message queue", start, due);
    if (use.closed()) return fail(EBADF);
    if (error != 0) return fail(error == -ETIME ? ETIMEDOUT : -error);
  }
}

bool has_limit_in_fiber(const fiber_call& call, const timespec* limit) noexcept {
  return limit != nullptr && is_valid(*limit) && call.may_wait();
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

ssize_t mq_receive(mqd_t queue, char* buffer, std::size_t size, unsigned* priority) {
  const fiber_call call;
  if (!call.may_wait()) return libc.mq_receive(queue, buffer, size, priority);
  return call.result(move_message(call.home(), queue, POLLIN, no_limit, [&](const timespec* limit) {
    return libc.mq_timedreceive(queue, buffer, size, priority, limit);
  }));
}

ssize_t mq_timedreceive(mqd_t queue, char* buffer, std::size_t size, unsigned* priority,
                        const timespec* limit) {
  const fiber_call call;
  if (!has_limit_in_fiber(call, limit))
    return libc.mq_timedreceive(queue, buffer, size, priority, limit);
  const motet::clock::time_point due = due_at(call.home(), CLOCK_REALTIME, *limit);
  return call.result(move_message(call.home(), queue, POLLIN, due, [&](const timespec* past) {
    return libc.mq_timedreceive(queue, buffer, size, priority, past);
  }));
}

int mq_send(mqd_t queue, const char* buffer, std::size_t size, unsigned priority) {
  const fiber_call call;
  if (!call.may_wait()) return libc.mq_send(queue, buffer, size, priority);
  return call.result(
      move_message(call.home(), queue, POLLOUT, no_limit, [&](const timespec* limit) {
        return libc.mq_timedsend(queue, buffer, size, priority, limit);
      }));
}

/// Calls of other fibers of the thread end first, as with close(2).
int mq_close(mqd_t queue) noexcept {
  const fiber_call call;
  if (queue >= 0 && call.may_wait() && !call.home().calls.end_all_on(queue)) return fail(EBADF);
  return libc.mq_close(queue);
}

int mq_timedsend(mqd_t queue, const char* buffer, std::size_t size, unsigned priority,
                 const timespec* limit) {
  const fiber_call call;
  if (!has_limit_in_fiber(call, limit))
    return libc.mq_timedsend(queue, buffer, size, priority, limit);
  const motet::clock::time_point due = due_at(call.home(), CLOCK_REALTIME, *limit);
  return call.result(move_message(call.home(), queue, POLLOUT, due, [&](const timespec* past) {
    return libc.mq_timedsend(queue, buffer, size, priority, past);
  }));
}

}  // extern "C"
