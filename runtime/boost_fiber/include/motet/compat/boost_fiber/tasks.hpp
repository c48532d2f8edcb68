// SPDX-License-Identifier: MIT
// Functions whose results become futures, as in Boost.Fiber.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/compat/boost_fiber/fiber.hpp>
#include <motet/compat/boost_fiber/futures.hpp>
#include <motet/sync/future.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

/// A function whose result, or exception, goes to a future.
template <typename R, typename... Arguments>
class packaged_task<R(Arguments...)> {
 public:
  /// Not a switchpoint.
  packaged_task() = default;
  /// Not a switchpoint.
  /// Throws: std::bad_alloc; what copying `f` throws.
  template <typename F>
    requires(!std::is_same_v<std::decay_t<F>, packaged_task>)
  explicit packaged_task(F&& f)
      : function_(std::make_unique<callable<std::decay_t<F>>>(std::forward<F>(f))) {}
  /// The allocator has no effect.
  /// Not a switchpoint.
  template <typename Allocator, typename F>
  packaged_task(std::allocator_arg_t, const Allocator&, F&& f)
      : packaged_task(std::forward<F>(f)) {}

  /// Not a switchpoint.
  bool valid() const noexcept { return function_ != nullptr; }
  /// Not a switchpoint.
  void swap(packaged_task& other) noexcept {
    function_.swap(other.function_);
    result_.swap(other.result_);
  }

  /// Not a switchpoint.
  /// Throws: future_already_retrieved; packaged_task_uninitialized.
  future<R> get_future() {
    check();
    return result_.get_future();
  }

  /// Calls the function.
  /// Switchpoint if the function is.
  /// Throws: promise_already_satisfied if it was called before; packaged_task_uninitialized.
  void operator()(Arguments... arguments) {
    check();
    if (result_.state_->get_future().ready()) throw promise_already_satisfied();
    function_->call(*result_.state_, std::forward<Arguments>(arguments)...);
  }

  /// Resets the task, so that it can be called again for another future.
  /// Not a switchpoint.
  /// Throws: packaged_task_uninitialized; std::bad_alloc.
  void reset() {
    check();
    result_ = promise<R>();
  }

 private:
  struct any_callable {
    virtual ~any_callable() = default;
    virtual void call(motet::promise<R>& result, Arguments... arguments) = 0;
  };

  template <typename F>
  struct callable : any_callable {
    template <typename From>
    explicit callable(From&& function) : f(std::forward<From>(function)) {}

    void call(motet::promise<R>& result, Arguments... arguments) override {
      try {
        if constexpr (std::is_void_v<R>) {
          std::invoke(f, std::forward<Arguments>(arguments)...);
          result.set_value();
        } else {
          result.set_value(std::invoke(f, std::forward<Arguments>(arguments)...));
        }
      } catch (const cancelled&) {
        result.set_exception(std::current_exception());
        throw;
      } catch (...) {
        // If moving the result threw, that exception is already stored.
        result.set_exception(std::current_exception());
      }
    }

    F f;
  };

  void check() const {
    if (!valid()) throw packaged_task_uninitialized();
  }

  std::unique_ptr<any_callable> function_;
  promise<R> result_;
};

/// Calls `f` with `arguments` on its own fiber.
/// Returns: a future of the result.
/// Switchpoint with launch::dispatch, else not a switchpoint.
/// Throws: as fiber().
template <typename Stack, typename F, typename... Arguments>
auto async(launch policy, std::allocator_arg_t, Stack&& stack, F&& f, Arguments... arguments) {
  packaged_task<std::invoke_result_t<std::decay_t<F>, Arguments...>(Arguments...)> task(
      std::forward<F>(f));
  auto result = task.get_future();
  fiber(policy, std::allocator_arg, std::forward<Stack>(stack), std::move(task),
        std::move(arguments)...)
      .detach();
  return result;
}
template <typename F, typename... Arguments>
auto async(launch policy, F&& f, Arguments... arguments) {
  return async(policy, std::allocator_arg, default_stack(), std::forward<F>(f),
               std::move(arguments)...);
}
template <detail::is_no_word_of_fibers F, typename... Arguments>
auto async(F&& f, Arguments... arguments) {
  return async(launch::post, std::forward<F>(f), std::move(arguments)...);
}

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
