// SPDX-License-Identifier: MIT
// A plain lazy coroutine, as a program or a library has its own.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace testing {

template <typename T>
class task {
 public:
  struct promise_type {
    task get_return_object() { return task(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct go_on {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> finished) noexcept {
          const std::coroutine_handle<> next = finished.promise().waits;
          return next ? next : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return go_on{};
    }
    void return_value(T result) { value.emplace(std::move(result)); }
    void unhandled_exception() { error = std::current_exception(); }

    std::coroutine_handle<> waits;
    std::optional<T> value;
    std::exception_ptr error;
  };

  task(task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  task& operator=(task&&) = delete;
  ~task() {
    if (handle_) handle_.destroy();
  }

  /// Runs until it waits or ends, with nothing to go on with.
  void start() { handle_.resume(); }
  bool done() const { return handle_.done(); }
  const std::exception_ptr& error() const { return handle_.promise().error; }
  T value() const {
    if (error() != nullptr) std::rethrow_exception(error());
    return *handle_.promise().value;
  }

  auto operator co_await() && noexcept {
    struct awaiter {
      task& awaited_task;
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting_handle) noexcept {
        awaited_task.handle_.promise().waits = awaiting_handle;
        return awaited_task.handle_;
      }
      T await_resume() { return awaited_task.value(); }
    };
    return awaiter{*this};
  }

 private:
  using handle = std::coroutine_handle<promise_type>;
  explicit task(handle source) noexcept : handle_(source) {}
  handle handle_;
};

}  // namespace testing
