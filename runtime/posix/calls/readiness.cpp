// SPDX-License-Identifier: MIT
// poll(2) and epoll_wait(2), and their relatives.
#include <poll.h>
#include <sys/epoll.h>

#include "base/system_calls.hpp"
#include "posix/any_ready.hpp"
#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/look.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

template <typename Block>
int wait_by_poll(thread_state& home, pollfd* entries, nfds_t count, clock::time_point due,
                 const sigset_t* mask, Block block) noexcept {
  constexpr timespec now{};
  const auto await = [&](clock::time_point limit, const signal_start& start) {
    return await_any_ready(home, {entries, count}, limit, start);
  };
  if (mask == nullptr)
    return look_until_ready(home, due, [&] { return sys::poll(entries, count, 0); }, await, block);
  if (must_not_switch(home)) return block();
  return look_with_mask(home, due, [&] { return libc.ppoll(entries, count, &now, mask); }, await);
}

/// With a mask the kernel delivers a signal only if the call may wait: for a millisecond.
template <typename Block>
int wait_by_epoll(thread_state& home, int epoll, epoll_event* events, int most,
                  clock::time_point due, const sigset_t* mask, Block block) noexcept {
  const auto await = [&](clock::time_point limit, const signal_start& start) {
    return await_ready(home, epoll, POLLIN, "epoll_wait", start, limit);
  };
  const auto look = [&] { return libc.epoll_wait(epoll, events, most, 0); };
  if (mask == nullptr) return look_until_ready(home, due, look, await, block);
  if (must_not_switch(home)) return block();
  return look_with_mask(
      home, due, [&] { return libc.epoll_pwait(epoll, events, most, 1, mask); }, await);
}

[[gnu::noinline]] int poll_in_fiber(pollfd* entries, nfds_t count, int milliseconds) noexcept {
  const fiber_call call;
  const auto block = [&] { return libc.poll(entries, count, milliseconds); };
  if (!call || milliseconds == 0) return block();
  return wait_by_poll(call.home(), entries, count, due_after(call.home(), milliseconds), nullptr,
                      block);
}

[[gnu::noinline]] int epoll_wait_in_fiber(int epoll, epoll_event* events, int most,
                                          int milliseconds) noexcept {
  const fiber_call call;
  const auto block = [&] { return libc.epoll_wait(epoll, events, most, milliseconds); };
  if (!call || milliseconds == 0) return block();
  return wait_by_epoll(call.home(), epoll, events, most, due_after(call.home(), milliseconds),
                       nullptr, block);
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int poll(pollfd* entries, nfds_t count, int milliseconds) {
  if (outside_of_fibers()) [[likely]]
    return libc.poll(entries, count, milliseconds);
  return poll_in_fiber(entries, count, milliseconds);
}

int ppoll(pollfd* entries, nfds_t count, const timespec* limit, const sigset_t* mask) {
  const fiber_call call;
  const auto block = [&] { return libc.ppoll(entries, count, limit, mask); };
  if (!call || !limit_allows_wait(limit)) return block();
  return wait_by_poll(call.home(), entries, count, due_after(call.home(), limit), mask, block);
}

int epoll_wait(int epoll, epoll_event* events, int most, int milliseconds) {
  if (outside_of_fibers()) [[likely]]
    return libc.epoll_wait(epoll, events, most, milliseconds);
  return epoll_wait_in_fiber(epoll, events, most, milliseconds);
}

int epoll_pwait(int epoll, epoll_event* events, int most, int milliseconds, const sigset_t* mask) {
  const fiber_call call;
  const auto block = [&] { return libc.epoll_pwait(epoll, events, most, milliseconds, mask); };
  if (!call || milliseconds == 0) return block();
  return wait_by_epoll(call.home(), epoll, events, most, due_after(call.home(), milliseconds), mask,
                       block);
}

int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* limit,
                 const sigset_t* mask) {
  const fiber_call call;
  const auto block = [&] { return libc.epoll_pwait2(epoll, events, most, limit, mask); };
  if (!call || !limit_allows_wait(limit)) return block();
  return wait_by_epoll(call.home(), epoll, events, most, due_after(call.home(), limit), mask,
                       block);
}

}  // extern "C"
