// SPDX-License-Identifier: MIT
// See posix/retry.hpp.
#include "posix/retry.hpp"

#include <algorithm>
#include <utility>

#include "posix/caller.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// poll(2) calls a file on a disk ready at any time, and its mode does not matter. Otherwise the
/// mode is the program's: it wants EAGAIN.
call_waits::verdict call_waits::begin() noexcept {
  if (is_file(fd()) || must_not_switch(home_)) return verdict::block;
  if (is_nonblocking(fd())) {
    errno = EAGAIN;
    return verdict::failed;
  }
  due_ = time_limit_of(home_, fd(), limit_option_);
  start_.emplace(is_socket(fd()) ? effect_with(due_) : on_signal::restart);
  home_.calls.note_use(use_);
  return verdict::retry;
}

call_waits::verdict call_waits::pause() noexcept {
  if (!std::exchange(began_, true)) {
    if (const verdict first = begin(); first != verdict::retry) return first;
  }
  const clock::time_point next = home_.time.after(pauses_.next_pause());
  expired_ = due_ <= next;
  const std::int32_t error = await_time(home_, std::min(due_, next), *start_);
  if (error == 0 && !use_.closed && !expired_) return verdict::retry;
  errno = use_.closed ? EBADF : error != 0 ? -error : EAGAIN;
  return verdict::failed;
}

/// A descriptor that is ready, on which the call would wait all the same, has something in its
/// error queue, or another reader that is quicker: from the second time on, the call pauses first.
std::int32_t call_waits::await_ready_again() noexcept {
  if (++vain_ > 2) {
    const clock::time_point pause = home_.time.after(pauses_.next_pause());
    const std::int32_t error = await_time(home_, std::min(due_, pause), *start_);
    if (error != 0) return error;
  }
  if (use_.closed) return -EBADF;
  if (due_ != no_limit && home_.time.now() >= due_) return -ETIME;
  return await_ready(home_, fd(), events_, call_, *start_, due_);
}

call_waits::verdict call_waits::await() noexcept {
  if (!std::exchange(began_, true)) {
    if (const verdict first = begin(); first != verdict::retry) return first;
  }
  const std::int32_t result = await_ready_again();
  expired_ = result == -ETIME;
  if (result == 0 && !use_.closed) return verdict::retry;
  errno = use_.closed ? EBADF : result == -ETIME ? EAGAIN : -result;
  return verdict::failed;
}

}}}  // namespace motet::MOTET_ABI::detail
