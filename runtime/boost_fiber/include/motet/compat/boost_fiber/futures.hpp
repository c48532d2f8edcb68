// SPDX-License-Identifier: MIT
// The futures and promises of Boost.Fiber, between fibers and threads.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <motet/cancellation/cancel.hpp>
#include <motet/compat/boost_fiber/errors.hpp>
#include <motet/detail/base/left_until.hpp>
#include <motet/sync/future.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

enum class future_status { ready = 1, timeout, deferred };

template <typename T>
class promise;
template <typename Signature>
class packaged_task;

/// What future and shared_future have in common.
template <typename T>
class basic_future {
 public:
  /// Not a switchpoint.
  bool valid() const noexcept { return valid_; }

  /// Switchpoint.
  /// Throws: future_uninitialized if there is no promise.
  void wait() const { state().wait(); }
  /// Returns: ready or timeout.
  /// Switchpoint.
  /// Throws: as wait().
  template <typename Rep, typename Period>
  future_status wait_for(const std::chrono::duration<Rep, Period>& limit) const {
    motet::detail::here_core().deliver();
    const bool ready = state().ready() || motet::move_on_after(limit, [this] { wait(); });
    return ready ? future_status::ready : future_status::timeout;
  }
  template <typename Clock, typename Duration>
  future_status wait_until(const std::chrono::time_point<Clock, Duration>& end) const {
    return wait_for(detail::remaining_until(end));
  }

  /// Waits.
  /// Returns: the exception that the promise was given; null if it was given a value.
  /// Switchpoint.
  /// Throws: as wait().
  std::exception_ptr get_exception_ptr() const {
    wait();
    try {
      static_cast<void>(detail::ready_future::read(state_));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

 protected:
  basic_future() = default;
  explicit basic_future(motet::future<T> future_state) noexcept
      : state_(std::move(future_state)), valid_(true) {}
  basic_future(const basic_future&) = default;
  basic_future& operator=(const basic_future&) = default;
  basic_future(basic_future&& other) noexcept
      : state_(std::move(other.state_)), valid_(std::exchange(other.valid_, false)) {}
  basic_future& operator=(basic_future&& other) noexcept {
    state_ = std::move(other.state_);
    valid_ = std::exchange(other.valid_, false);
    return *this;
  }

  const motet::future<T>& state() const {
    if (!valid()) throw future_uninitialized();
    return state_;
  }

  motet::future<T> state_;
  bool valid_ = false;
};

template <typename T>
class shared_future;

template <typename T>
class future : public basic_future<T> {
 public:
  /// Not a switchpoint.
  future() = default;
  future(future&&) noexcept = default;
  future& operator=(future&&) noexcept = default;

  /// Waits for the value, and moves it out; the future is no longer valid afterwards.
  /// Switchpoint.
  /// Throws: the promise's exception; future_uninitialized; broken_promise.
  T get() {
    this->wait();
    const future source = std::move(*this);
    return detail::ready_future::take(source.state_);
  }

  /// Not a switchpoint.
  shared_future<T> share() { return shared_future<T>(std::move(*this)); }

 private:
  friend class promise<T>;
  friend class shared_future<T>;
  using basic_future<T>::basic_future;
};

/// Copies share one value.
template <typename T>
class shared_future : public basic_future<T> {
 public:
  /// Not a switchpoint.
  shared_future() = default;
  shared_future(future<T>&& other) noexcept : basic_future<T>(std::move(other)) {}

  /// Switchpoint.
  /// Throws: as future::get().
  decltype(auto) get() const { return this->state().get(); }
};

template <typename T>
class promise {
 public:
  /// Not a switchpoint.
  /// Throws: std::bad_alloc.
  promise() : state_(std::in_place) {}
  /// The allocator has no effect.
  /// Not a switchpoint.
  template <typename Allocator>
  promise(std::allocator_arg_t, const Allocator&) : promise() {}
  promise(promise&& other) noexcept
      : state_(std::exchange(other.state_, std::nullopt)), retrieved_(other.retrieved_) {}
  promise& operator=(promise&& other) noexcept {
    promise(std::move(other)).swap(*this);
    return *this;
  }
  /// Not a switchpoint.
  ~promise() {
    if (state_) state_->set_exception(std::make_exception_ptr(broken_promise()));
  }

  /// Not a switchpoint.
  void swap(promise& other) noexcept {
    std::swap(state_, other.state_);
    std::swap(retrieved_, other.retrieved_);
  }

  /// Not a switchpoint.
  /// Throws: future_already_retrieved on a second call; promise_uninitialized for a moved-from
  ///         promise.
  future<T> get_future() {
    check();
    if (std::exchange(retrieved_, true)) throw future_already_retrieved();
    return future<T>(state_->get_future());
  }

  /// Not a switchpoint.
  /// Throws: promise_already_satisfied; promise_uninitialized; what copying the value throws, which
  ///         the future then receives as well.
  template <typename Value = T>
    requires(!std::is_void_v<T>)
  void set_value(Value&& value) {
    check();
    if (!state_->set_value(std::forward<Value>(value))) throw promise_already_satisfied();
  }
  void set_value()
    requires std::is_void_v<T>
  {
    check();
    if (!state_->set_value()) throw promise_already_satisfied();
  }
  /// Not a switchpoint.
  /// Throws: promise_already_satisfied; promise_uninitialized.
  void set_exception(std::exception_ptr error) {
    check();
    if (!state_->set_exception(std::move(error))) throw promise_already_satisfied();
  }

 private:
  template <typename Signature>
  friend class packaged_task;
  void check() const {
    if (!state_) throw promise_uninitialized();
  }

  std::optional<motet::promise<T>> state_;
  bool retrieved_ = false;
};

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
