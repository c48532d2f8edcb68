// SPDX-License-Identifier: MIT
// Calls on another thread. A lent_call may borrow, so its caller waits for its end in any case. An
// owned_call owns what it touches, so that its caller can leave before its end.
#pragma once

#include <signal.h>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/blocking_call.hpp>
#include <motet/detail/base/owned.hpp>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class remote_wait;

template <typename F>
inline constexpr bool accepts_stop_token = std::is_invocable_v<F, std::stop_token>;

template <typename F>
decltype(auto) invoke_offloaded(F&& f, [[maybe_unused]] const std::stop_source& stop) {
  if constexpr (accepts_stop_token<F>) {
    return std::invoke(std::forward<F>(f), stop.get_token());
  } else {
    return std::invoke(std::forward<F>(f));
  }
}

template <typename F>
using offloaded_result =
    decltype(invoke_offloaded(std::declval<F>(), std::declval<const std::stop_source&>()));

/// Throws to a job's caller what the job has thrown; a `cancelled` becomes fiber_cancelled, for it
/// was not the caller that was cancelled.
[[noreturn]] void throw_from_job(std::exception_ptr error);

/// Ends the runtime that a job has started on its thread, if there is one.
void end_runtime_of_job() noexcept;

/// The value or the exception that a call has ended with; T may be a reference or void.
template <typename T>
class offloaded_outcome {
 public:
  template <typename F>
  void come_from(F&& f, const std::stop_source& stop) noexcept {
    try {
      if constexpr (std::is_void_v<T>) {
        invoke_offloaded(std::forward<F>(f), stop);
      } else if constexpr (std::is_reference_v<T>) {
        auto&& result_reference = invoke_offloaded(std::forward<F>(f), stop);
        value_ = std::addressof(result_reference);
      } else {
        value_.emplace(invoke_offloaded(std::forward<F>(f), stop));
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  T take() {
    if (error_ != nullptr) throw_from_job(std::move(error_));
    if constexpr (!std::is_void_v<T>) return static_cast<T&&>(*value_);
  }

 private:
  struct nothing {};
  using stored =
      std::conditional_t<std::is_void_v<T>, nothing,
                         std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*,
                                            std::optional<std::remove_cv_t<T>>>>;

  [[no_unique_address]] stored value_{};
  std::exception_ptr error_;
};

/// A call in the frame of its caller, which waits for its end.
class lent_call : public blocking_call {
 public:
  /// Makes the call on an offload thread, and waits for its end, however late. Without a runtime,
  /// makes the call on this thread.
  /// Throws: a pending interruption if the call has not begun; std::system_error if there is no
  ///         thread.
  void await_end();

 protected:
  ~lent_call() = default;
  virtual void call() noexcept = 0;

  std::stop_source stop_{std::nostopstate};

 private:
  bool run() noexcept final;
  void notify() noexcept final;

  sigset_t signals_{};  // the mask of the caller's thread, which the call is made under
  remote_wait* caller_ = nullptr;
};

/// A call on the heap. It belongs to the caller that waits for it; a caller that is interrupted
/// leaves the call to the offload thread that makes it.
class owned_call : public blocking_call {
 public:
  owned_call() = default;
  virtual ~owned_call() = default;

  /// Makes the call on an offload thread, and waits for its end. Without a runtime, makes the call
  /// on this thread.
  /// Throws: a pending interruption, and then `call` is empty if its thread owns it now;
  ///         std::system_error if there is no thread. Otherwise `call` has ended, and the caller
  ///         still owns it.
  static void await_end(owned<owned_call>& call);

 protected:
  virtual void call() noexcept = 0;

  std::stop_source stop_{std::nostopstate};

 private:
  bool run() noexcept final;
  void notify() noexcept final;

  enum class phase : unsigned char { awaited, abandoned, over };
  atomic<phase> phase_{phase::awaited};
  sigset_t signals_{};  // as a lent_call's
  remote_wait* caller_ =
      nullptr;  // in the caller's frame, valid until the caller leaves or is notified
};

template <typename F>
class lent_call_of final : public lent_call {
 public:
  using result = offloaded_result<F>;

  explicit lent_call_of(F&& f) : f_(std::forward<F>(f)) {
    if constexpr (accepts_stop_token<F>) stop_ = std::stop_source();
  }
  result take() { return outcome_.take(); }

 private:
  void call() noexcept override { outcome_.come_from(std::forward<F>(f_), stop_); }

  F&& f_;
  offloaded_outcome<result> outcome_;
};

/// `F` is not a reference.
template <typename F>
class owned_call_of final : public owned_call {
 public:
  using result = std::remove_cvref_t<offloaded_result<F>>;

  template <typename From>
    requires std::constructible_from<F, From>
  explicit owned_call_of(From&& function) : f_(std::forward<From>(function)) {
    if constexpr (accepts_stop_token<F>) stop_ = std::stop_source();
  }
  result take() { return outcome_.take(); }

 private:
  void call() noexcept override { outcome_.come_from(std::move(f_), stop_); }

  F f_;
  offloaded_outcome<result> outcome_;
};

/// As offload().
template <typename F>
decltype(auto) offload_to(offload_pool pool, F&& f, call_site site = {}) {
  lent_call_of<F> call(std::forward<F>(f));
  call.pool = pool;
  call.site = site;
  call.await_end();
  return call.take();
}

/// As offload_owned().
template <typename F>
auto offload_owned_to(offload_pool pool, F&& f, call_site site = {}) {
  using call_type = owned_call_of<std::decay_t<F>>;
  auto* const call = new call_type(std::forward<F>(f));
  owned<owned_call> owner(call);
  call->pool = pool;
  call->site = site;
  owned_call::await_end(owner);
  return call->take();
}

}}}  // namespace motet::MOTET_ABI::detail
