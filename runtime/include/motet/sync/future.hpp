// SPDX-License-Identifier: MIT
// A value, or an error, that a fiber or thread will provide later.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/sync/publication.hpp>
#include <motet/sync/future_fwd.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

class thread_pool;

namespace detail {

template <typename T>
struct future_case;
template <typename T, typename F>
struct starting;

[[noreturn]] void refuse_empty_future();
[[noreturn]] void refuse_taken_value();
std::exception_ptr broken_promise() noexcept;
/// Returns: `error`; instead of a `cancelled`, which concerns one fiber only, a fiber_cancelled
///          that names `maker`.
std::exception_ptr as_seen_by_others(std::exception_ptr error,
                                     const char* maker = "who made a promise") noexcept;

struct nothing_more {};

/// How a T is stored: a reference as its address.
template <typename T>
struct stored_as {
  using type = T;
};
template <typename T>
struct stored_as<T&> {
  using type = T*;
};
template <>
struct stored_as<void> {
  using type = nothing_more;
};

template <typename T>
struct future_state {
  using stored = typename stored_as<T>::type;

  /// Returns: whether the caller is the first to decide; it must then call publish().
  bool decide() noexcept { return !decided.exchange(true, std::memory_order_relaxed); }
  void publish() { publication.set(); }

  atomic<bool> decided{false};
  atomic<bool> taken{false};
  detail::publication publication;
  std::optional<stored> value;
  std::exception_ptr error;
};

}  // namespace detail

/// Waits for the value of a promise, which may be a reference. Copies share one value. Any thread.
template <typename T>
class future {
  static_assert(!std::is_rvalue_reference_v<T>, "a future has a value or an lvalue reference");

 public:
  /// A future without a promise.
  /// Not a switchpoint.
  future() = default;

  /// Waits until there is a value or an error.
  /// Switchpoint.
  /// Throws: a pending interruption; std::logic_error if there is no promise.
  void wait() const { state().publication.wait(); }

  /// Returns: whether wait() would return at once.
  /// Not a switchpoint.
  bool ready() const { return state().publication.is_set(); }

  /// Waits for the value.
  /// Returns: the value, which lives as long as a future that refers to it.
  /// Switchpoint.
  /// Throws: the error, if the promise was given one; std::future_error (broken_promise) if the
  ///         promise was dropped; std::logic_error if the value has been taken, or there is no
  ///         promise; a pending interruption.
  decltype(auto) get() const& {
    wait();
    return read_ready();
  }

  /// The same, but moves the value out, which is possible once. A reference returned by an earlier
  /// get() const& then refers to a moved-from value.
  /// Switchpoint.
  T get() && {
    wait();
    return take_ready();
  }

 private:
  friend class promise<T>;
  friend class thread_pool;
  friend struct detail::future_case<T>;
  friend struct detail::ready_future;
  explicit future(std::shared_ptr<detail::future_state<T>> state) noexcept
      : state_(std::move(state)) {}

  // Called after wait(); makes no switchpoints.
  decltype(auto) read_ready() const {
    throw_error();
    if (state_->taken.load(std::memory_order_acquire)) detail::refuse_taken_value();
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**state_->value);
    } else if constexpr (!std::is_void_v<T>) {
      return std::as_const(*state_->value);
    }
  }

  T take_ready() const {
    throw_error();
    if (state_->taken.exchange(true, std::memory_order_acq_rel)) detail::refuse_taken_value();
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**state_->value);
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(*state_->value);
    }
  }

  detail::future_state<T>& state() const {
    if (state_ == nullptr) detail::refuse_empty_future();
    return *state_;
  }

  void throw_error() const {
    if (state_->error != nullptr) std::rethrow_exception(state_->error);
  }

  std::shared_ptr<detail::future_state<T>> state_;
};

/// Gives a future its value or its error. Move-only. If a promise is dropped without either, get()
/// throws std::future_error. Of several values and errors the first counts. Any thread.
template <typename T>
class promise {
 public:
  /// Not a switchpoint.
  /// Throws: std::bad_alloc.
  promise() : state_(std::make_shared<detail::future_state<T>>()) {}
  promise(promise&&) noexcept = default;
  promise& operator=(promise&& other) noexcept {
    promise old(std::move(other));
    state_.swap(old.state_);
    return *this;
  }
  /// Not a switchpoint.
  ~promise() {
    if (state_ == nullptr || state_->decided.load(std::memory_order_relaxed)) return;
    set_exception(detail::broken_promise());
  }

  /// Returns: a future of this promise; may be called more than once.
  /// Not a switchpoint.
  /// Throws: std::logic_error for a moved-from promise.
  future<T> get_future() const {
    check();
    return future<T>(state_);
  }

  /// Returns: false, without effect, if the future had a value or an error already.
  /// Not a switchpoint.
  /// Throws: what making the value throws, which becomes the future's error; std::logic_error if
  ///         this has been moved from.
  template <typename... Args>
  bool set_value(Args&&... args) {
    static_assert(!std::is_void_v<T> || sizeof...(Args) == 0, "a promise<void> has no value");
    check();
    const auto state = state_;  // a thread that sees the value may destroy this promise
    if (!state->decide()) return false;
    try {
      if constexpr (std::is_reference_v<T>) {
        static_assert(sizeof...(Args) == 1 && (std::is_lvalue_reference_v<Args> && ...),
                      "a promise of a reference takes an object that outlives the call");
        state->value.emplace(std::addressof(args)...);
      } else {
        state->value.emplace(std::forward<Args>(args)...);
      }
    } catch (...) {
      state->error = detail::as_seen_by_others(std::current_exception());
      state->publish();
      throw;
    }
    state->publish();
    return true;
  }

  /// Returns: as set_value().
  /// Not a switchpoint.
  /// Throws: std::logic_error if this has been moved from.
  bool set_exception(std::exception_ptr error) {
    check();
    const auto state = state_;
    if (!state->decide()) return false;
    state->error = detail::as_seen_by_others(std::move(error));
    state->publish();
    return true;
  }

 private:
  template <typename, typename>
  friend struct detail::starting;
  void check() const {
    if (state_ == nullptr) detail::refuse_empty_future();
  }

  std::shared_ptr<detail::future_state<T>> state_;
};

}}  // namespace motet::MOTET_ABI
