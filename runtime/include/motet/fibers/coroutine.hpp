// SPDX-License-Identifier: MIT
// C++20 coroutines and fibers: a fiber awaits a coroutine with await_coro(), a coroutine awaits a
// fiber or a future with co_await. motet.hpp does not include this.
//
// A coroutine that a fiber awaits runs on that fiber, even after it has waited for a motet object.
// So the fiber's deadlines, shields, locks and fiber_locals are the coroutine's, and it
// may call any switchpoint; then the fiber waits as well.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <motet/detail/fibers/coroutine_driver.hpp>
#include <motet/detail/sync/room_cases.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/sync/future.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

template <typename A>
decltype(auto) awaiter_of(A&& awaitable) {
  if constexpr (requires { std::forward<A>(awaitable).operator co_await(); }) {
    return std::forward<A>(awaitable).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<A>(awaitable)); }) {
    return operator co_await(std::forward<A>(awaitable));
  } else {
    return std::forward<A>(awaitable);
  }
}

/// The type of `co_await` for an A.
template <typename A>
using co_awaited = decltype(std::declval<decltype(awaiter_of(std::declval<A>()))>().await_resume());

/// What await_coro() waits for, in the frame of its fiber.
template <typename T>
struct coroutine_outcome {
  T take() {
    if (error != nullptr) std::rethrow_exception(error);
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**value);
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(*value);
    }
  }

  event completion;
  std::optional<typename stored_as<T>::type> value;
  std::exception_ptr error;
};

/// The coroutine that stands between the awaitable and await_coro().
class root_coroutine {
 public:
  struct promise_type {
    template <typename A, typename T>
    promise_type(const control_block&, A&, coroutine_outcome<T>& outcome) noexcept
        : completion(&outcome.completion) {}
    root_coroutine get_return_object() noexcept {
      return root_coroutine(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
      struct tell {
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<promise_type> handle) const noexcept {
          handle.promise().completion->set();  // may destroy the frame
        }
        void await_resume() const noexcept {}
      };
      return tell{};
    }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }

    event* completion;
  };

  root_coroutine(root_coroutine&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  root_coroutine& operator=(root_coroutine&&) = delete;
  ~root_coroutine() {
    if (handle_) handle_.destroy();
  }
  void start() const { handle_.resume(); }

 private:
  explicit root_coroutine(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

template <typename A, typename T>
root_coroutine co_await_for(const control_block& waiter, A& awaitable,
                            coroutine_outcome<T>& outcome) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::forward<A>(awaitable);
      outcome.value.emplace();
    } else if constexpr (std::is_reference_v<T>) {
      T result = co_await std::forward<A>(awaitable);
      outcome.value.emplace(std::addressof(result));
    } else {
      outcome.value.emplace(co_await std::forward<A>(awaitable));
    }
  } catch (...) {
    outcome.error = failure_for(waiter);
  }
}

class awaiter_of_branch : protected suspended_coroutine {
 protected:
  template <typename Branch>
  void wait_for_branch(Branch&& branch, std::coroutine_handle<> handle) {
    wait_for(std::make_unique<coroutine_wait_on<Branch>>(std::move(branch)), handle.address(),
             [](void* frame) { std::coroutine_handle<>::from_address(frame).resume(); });
  }
};

template <typename T>
class future_awaiter : private awaiter_of_branch {
 public:
  explicit future_awaiter(future<T> result) noexcept : future_(std::move(result)) {}

  bool await_ready() const { return future_.ready(); }
  void await_suspend(std::coroutine_handle<> handle) {
    wait_for_branch(future_case<T>(future_), handle);
  }

 protected:
  future<T>& over() {
    throw_interruption();
    return future_;
  }

 private:
  future<T> future_;
};

template <typename T>
struct future_reader final : future_awaiter<T> {
  using future_awaiter<T>::future_awaiter;
  decltype(auto) await_resume() { return ready_future::read(this->over()); }
};
template <typename T>
struct future_taker final : future_awaiter<T> {
  using future_awaiter<T>::future_awaiter;
  T await_resume() { return ready_future::take(this->over()); }
};

/// `Fiber` is a reference to a handle, which the coroutine keeps until it is resumed.
template <typename Fiber>
class fiber_awaiter final : private awaiter_of_branch {
 public:
  explicit fiber_awaiter(Fiber&& source_fiber) noexcept
      : fiber_(std::forward<Fiber>(source_fiber)) {}

  bool await_ready() const { return fiber_.state() == fiber_state::dead; }
  void await_suspend(std::coroutine_handle<> handle) { wait_for_branch(end_case(fiber_), handle); }
  decltype(auto) await_resume() {
    throw_interruption();
    control_block& dead = outcome_of(fiber_);
    using returned = decltype(std::declval<Fiber>().await());
    using value = std::remove_cvref_t<returned>;
    if constexpr (std::is_reference_v<returned>) {
      return static_cast<returned>(*static_cast<value*>(result_of(dead)));
    } else if constexpr (!std::is_void_v<returned>) {
      return value(std::move(*static_cast<value*>(take_result_of(dead))));
    }
  }

 private:
  Fiber&& fiber_;
};

}  // namespace detail

/// Waits for a future from a coroutine, as future::get() does from a fiber. The coroutine is
/// resumed by the fiber that ran it. If no fiber awaits the coroutine, it is resumed by a new child
/// of the fiber that ran it, so the end of that fiber ends the wait.
/// Not a switchpoint: only the coroutine waits.
/// Throws: as future::get(), in the coroutine; what interrupts the fiber that runs it;
///         std::logic_error on a thread that has no runtime, if it must wait.
template <typename T>
auto operator co_await(const future<T>& result) {
  return detail::future_reader<T>(result);
}
/// Not a switchpoint.
template <typename T>
auto operator co_await(future<T>&& result) {
  return detail::future_taker<T>(std::move(result));
}

/// The same for the end of a fiber, like its await(). The handle must live until then. Not a
/// switchpoint: only the coroutine waits.
inline auto operator co_await(const fiber_ref& source) {
  return detail::fiber_awaiter<const fiber_ref&>(source);
}
/// Not a switchpoint.
template <typename T>
auto operator co_await(const fiber<T>& source) {
  return detail::fiber_awaiter<const fiber<T>&>(source);
}
/// Not a switchpoint.
template <typename T>
auto operator co_await(fiber<T>&& source) {
  return detail::fiber_awaiter<fiber<T>>(std::move(source));
}

/// Runs a coroutine, or any other awaitable, on this fiber, and waits for its end. While the
/// coroutine waits for an object of motet, an interruption of this fiber is thrown inside it. While
/// it waits for a foreign object, nothing interrupts this call: foreign code refers to its frame.
/// Returns: the result of co_await.
/// Switchpoint.
/// Throws: a pending interruption, before the coroutine begins; what the coroutine throws;
///         fiber_cancelled if another fiber, on which it was resumed, was cancelled there;
///         std::bad_alloc.
template <typename A>
detail::co_awaited<A&&> await_coro(A&& awaitable) {
  using result = detail::co_awaited<A&&>;
  detail::here_core().deliver();
  detail::coroutine_driver driver;
  detail::coroutine_outcome<result> outcome;
  {
    const auto root = detail::co_await_for<A>(detail::fiber_here(), awaitable, outcome);
    root.start();
    driver.run(&outcome.completion);
  }
  return outcome.take();
}

}}  // namespace motet::MOTET_ABI
