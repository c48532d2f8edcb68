// SPDX-License-Identifier: MIT
// pthread_barrier_wait(3). A barrier cannot be tried, so another thread waits on the fiber's
// behalf.
#include <pthread.h>

#include <cerrno>
#include <motet/detail/core/internal_shield.hpp>
#include <new>

#include "posix/caller.hpp"
#include "posix/calls/plain_call.hpp"
#include "posix/locks/functions.hpp"
#include "posix/locks/lock_in_fiber.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

struct barrier_call {
  void operator()() noexcept { result = real.pthread_barrier_wait(barrier); }
  pthread_barrier_t* barrier = nullptr;
  int result = 0;
};

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  if (outside_of_fibers()) return real.pthread_barrier_wait(barrier);
  const lock_caller caller;
  if (!caller || !caller.may_wait()) return real.pthread_barrier_wait(barrier);
  try {
    const internal_shield shield;
    const auto ended = plain_call<barrier_call>::make(caller.home(), offload_pool::calls,
                                                      on_signal::go_on, barrier_call{barrier, 0});
    return ended == nullptr ? errno : ended->call().result;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}
