// SPDX-License-Identifier: MIT
// A coroutine of the program's own that awaits fibers and futures, and a fiber that awaits it.
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <motet/fibers/coroutine.hpp>
#include <motet/motet.hpp>
#include <utility>

using namespace std::chrono_literals;

namespace {

/// The least that a coroutine type needs: it is run when it is awaited.
class task {
 public:
  struct promise_type {
    task get_return_object() { return task(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct back_to_the_waiter {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(handle coroutine) noexcept {
          return coroutine.promise().waiter;
        }
        void await_resume() noexcept {}
      };
      return back_to_the_waiter{};
    }
    void return_value(int result) { value = result; }
    void unhandled_exception() { error = std::current_exception(); }

    std::coroutine_handle<> waiter;
    int value = 0;
    std::exception_ptr error;
  };
  using handle = std::coroutine_handle<promise_type>;

  task(task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  ~task() {
    if (handle_) handle_.destroy();
  }
  bool await_ready() { return false; }
  handle await_suspend(std::coroutine_handle<> waiter) {
    handle_.promise().waiter = waiter;
    return handle_;
  }
  int await_resume() {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return handle_.promise().value;
  }

 private:
  explicit task(handle coroutine) : handle_(coroutine) {}
  handle handle_;
};

task price(motet::future<int> net) {
  const int tax = co_await motet::spin([] {
    motet::sleep_for(2ms);  // it is looked up
    return 19;
  });
  const int base = co_await net;
  co_return base + base* tax / 100;
}

}  // namespace

int main() {
  motet::promise<int> net;
  auto asks = motet::spin([&] { std::printf("%d\n", motet::await_coro(price(net.get_future()))); });
  motet::sleep_for(1ms);
  net.set_value(200);
  asks.await();
}
