// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: operations of Asio's that are over when they begin.
#include <asio/any_io_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <motet/compat/asio.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "cancellation/endless_loop.hpp"

namespace {

using namespace testing;
using compat::use_fiber;

/// An operation that calls its handler at once.
template <typename Token, typename... Values>
auto async_know(Token&& token, Values... values) {
  return asio::async_initiate<Token, void(Values...)>(
      [](auto handler, auto... arguments) { handler(std::move(arguments)...); }, token,
      std::move(values)...);
}

/// An Asio loop on a thread of its own.
struct loop_thread {
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  ~loop_thread() {
    busy.reset();
    thread.join();
  }
};

const switchpoint_table table = {
    {"use_fiber", [](endless_loop& again) { again([] { async_know(use_fiber); }); }},
    {"use_fiber, a value", [](endless_loop& again) { again([] { async_know(use_fiber, 1); }); }},
    {"use_fiber, a code",
     [](endless_loop& again) { again([] { async_know(use_fiber, std::error_code(), 1); }); }},
    {"use_fiber, a timer that is over",
     [](endless_loop& again) {
       loop_thread remote;
       again([&] {
         asio::steady_timer timer(remote.io, asio::steady_timer::time_point::min());
         timer.async_wait(use_fiber);
       });
     }},
    {"asio_context::executor_type::execute",
     [](endless_loop& again) {
       thread_pool pool(1, "wide", 1'000'000);
       compat::asio_context place{executor(pool)};
       again([target = place.get_executor()] { target.execute([] {}); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
