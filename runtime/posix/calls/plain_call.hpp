// SPDX-License-Identifier: MIT
// A call on another thread, whose end makes a descriptor readable. It owns what it uses, so that an
// interrupted fiber can abandon it.
#pragma once

#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <motet/detail/base/blocking_call.hpp>
#include <motet/io/fd.hpp>
#include <utility>

#include "base/system_calls.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/signal_mask.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// `Call` has a noexcept operator(), in which it keeps its results.
template <typename Call>
class plain_call final : public blocking_call {
 public:
  /// Makes the call on another thread and waits for its end.
  /// Returns: the call; null, with errno, if it could not be made, or an interruption has ended the
  ///          wait; then sets `has_begun`.
  /// Throws: std::bad_alloc.
  static std::shared_ptr<plain_call> make(thread_state& home, offload_pool pool, on_signal effect,
                                          Call call, bool* has_begun = nullptr) {
    if (const int pending = pending_error(home); pending != 0) {
      errno = pending;
      return nullptr;
    }
    auto shared = std::make_shared<plain_call>(std::move(call));
    shared->pool = pool;
    const std::int32_t error = shared->begin(shared);
    if (has_begun != nullptr) *has_begun = error == 0;
    const std::int32_t result = error != 0 ? error : shared->await_end(home, effect);
    if (result == 0) return shared;
    errno = -result;
    return nullptr;
  }

  explicit plain_call(Call call)
      : call_(std::move(call)), ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Call& call() noexcept { return call_; }

 private:
  std::int32_t begin(const std::shared_ptr<plain_call>& shared) noexcept {
    if (!ended_) return -errno;
    running_ = shared;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &signals_);
    const int error = blocking_pool::submit(*this);
    if (error != 0) running_ = nullptr;
    return -error;
  }

  std::int32_t await_end(thread_state& home, on_signal effect) noexcept {
    std::int32_t error = 0;
    while (state_.load(std::memory_order_acquire) != state::over && error == 0)
      error = await_ready(home, ended_.get(), POLLIN, "end of a call", effect);
    if (error == 0) {
      forget_event();
      return 0;
    }
    if (blocking_pool::withdraw(*this)) {
      running_ = nullptr;
    } else {
      state_.store(state::abandoned, std::memory_order_relaxed);
      blocking_pool::mark_abandoned(*this);
      blocking_pool::end_wait_of_caller();
    }
    return error;
  }

  /// libev would otherwise find the descriptor readable while the other thread closes it.
  void forget_event() noexcept {
    std::uint64_t ends = 0;
    [[maybe_unused]] const ssize_t size = sys::read(ended_.get(), &ends, sizeof ends);
  }

  void announce_end() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = sys::write(ended_.get(), &one, sizeof one);
  }

  bool run() noexcept override {
    {
      const signal_mask of_caller(SIG_SETMASK, signals_);  // which child processes inherit
      call_();
    }
    if (state_.exchange(state::over, std::memory_order_acq_rel) != state::abandoned) announce_end();
    const std::shared_ptr<plain_call> last = std::move(running_);
    return false;
  }
  void notify() noexcept override {}

  Call call_;
  const fd ended_;
  enum class state : std::uint8_t { running, over, abandoned };
  std::atomic<state> state_{state::running};  // what poll(2) reports orders no memory accesses
  sigset_t signals_{};
  std::shared_ptr<plain_call> running_;  // itself, while the other thread needs it
};

}}}  // namespace motet::MOTET_ABI::detail
