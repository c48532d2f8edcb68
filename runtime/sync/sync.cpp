// SPDX-License-Identifier: MIT
// The errors that primitives throw, and the parts of primitives that need not be in a header.
#include <future>
#include <motet/cancellation/cancel.hpp>
#include <motet/sync/barrier.hpp>
#include <motet/sync/broadcast.hpp>
#include <motet/sync/channel_ends.hpp>
#include <motet/sync/every.hpp>
#include <motet/sync/future.hpp>
#include <motet/sync/latch.hpp>
#include <motet/sync/mutex.hpp>
#include <motet/sync/rate_limiter.hpp>
#include <motet/sync/resource_pool.hpp>
#include <motet/sync/semaphore.hpp>
#include <stdexcept>

#include "base/made_exception.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void refuse_to_unlock() {
  throw std::logic_error("mutex::unlock(): the calling fiber does not hold the mutex");
}

void refuse_to_lock_again() {
  throw std::logic_error("mutex::lock(): the calling fiber already holds the mutex");
}

void refuse_permits() {
  throw std::invalid_argument(
      "a semaphore counts permits from 1, its limit from 0, and both to PTRDIFF_MAX");
}

void throw_semaphore_closed() {
  throw semaphore_closed();
}

void refuse_latch_count() {
  throw std::invalid_argument("latch: the count must not become negative");
}

void refuse_parties() {
  throw std::invalid_argument("barrier: the number of parties must be at least 1");
}

void refuse_arrival() {
  throw std::logic_error("barrier: all parties have left");
}

void refuse_empty_end() {
  throw std::logic_error("channel: the sender or receiver has no channel");
}

void refuse_zero_capacity() {
  throw std::invalid_argument("broadcast: the capacity must be at least 1");
}

void refuse_empty_subscription() {
  throw std::logic_error("subscription: it is empty");
}

void refuse_empty_pool() {
  throw std::invalid_argument(
      "resource_pool: the limit must be at least 1 and fit into memory, and `make` must be "
      "callable");
}

void refuse_to_use_returned() {
  throw std::logic_error("lease: the resource has been discarded");
}

void refuse_rate() {
  throw std::invalid_argument(
      "rate_limiter: the count, the period, the burst and each cost must be at least 1, a cost at "
      "most the burst, and a burst at most 70 years");
}

void refuse_period() {
  throw std::invalid_argument("every(): the period must be greater than 0");
}

void refuse_empty_future() {
  throw std::logic_error("the promise or future has no shared state");
}

void refuse_taken_value() {
  throw std::logic_error("future::get(): the value has already been taken");
}

std::exception_ptr broken_promise() noexcept {
  return made_exception<std::future_error>(std::future_errc::broken_promise);
}

std::exception_ptr as_seen_by_others(std::exception_ptr error, const char* maker) noexcept {
  if (error == nullptr)
    return made_exception<std::invalid_argument>("set_exception(): the exception_ptr is null");
  try {
    std::rethrow_exception(error);
  } catch (const cancelled& e) {
    return made_exception<fiber_cancelled>(maker, e);
  } catch (...) {
    return error;
  }
}

template <typename Sharing>
void last_call<Sharing>::rest_until(clock::time_point deadline) {
  if (self_core() == nullptr) {
    for_threads_.wait_until(deadline);
  } else {
    move_on_after(deadline - clock::now(), [&] { for_fibers_.wait(); });
  }
}

template void last_call<shared_policy>::rest_until(clock::time_point);
template void last_call<local_policy>::rest_until(clock::time_point);

void refuse_capacity() {
  throw std::invalid_argument("channel: the capacity is too large; use motet::unbounded");
}

void throw_channel_closed() {
  throw channel_closed();
}

}}}  // namespace motet::MOTET_ABI::detail
