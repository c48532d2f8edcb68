// SPDX-License-Identifier: MIT
// See motet/runtime/run_until_signal.hpp. A fiber beside the main fiber waits for the signals.
#include <signal.h>

#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/group.hpp>
#include <motet/io/signal_set.hpp>
#include <motet/runtime/run.hpp>
#include <motet/runtime/run_until_signal.hpp>
#include <optional>
#include <string>
#include <utility>

#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr int status_of_signalled = 128;  // what a shell adds to a signal's number

/// A mask is inherited: a parent that blocks the signal, as some supervisors do, would leave this
/// program without an end.
void warn_of_blocked_signals(const options& settings) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (const auto& [number, name] : {std::pair{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}}) {
    if (::sigismember(&mask, number) != 1) continue;
    notice(settings, std::string("run_until_signal: ") + name +
                         " is blocked in this thread (perhaps inherited from the parent process); "
                         "while every thread blocks it, it cannot end the program");
  }
}

}  // namespace

namespace {

/// Nobody waits for signals any more.
void end(fiber_ref waiter) {
  waiter.cancel();
  try {
    waiter.await();
  } catch (const fiber_cancelled&) {
  }
}

}  // namespace

int run_until_signal(const options& settings, const signalled_main& f, bool drains) {
  warn_of_blocked_signals(settings);
  return run(settings, [&] {
    int first = 0;
    std::stop_source drain;
    std::stop_source escalate;
    std::optional<int> status;
    {
      std::optional<signal_set> signals(std::in_place, std::initializer_list<int>{SIGINT, SIGTERM});
      group tasks;
      const fiber_ref signal_fiber = tasks.spin({.name = "signals"}, [&] {
        first = signals->next();
        drain.request_stop();
        if (drains) signals->next();
        signals.reset();
        escalate.request_stop();
      });
      status = move_on_when_stopped(escalate.get_token(), [&] { return f(drain.get_token()); });
      end(signal_fiber);
    }
    if (status.value_or(0) != 0) return *status;
    return first == 0 ? 0 : status_of_signalled + first;
  });
}

}}}  // namespace motet::MOTET_ABI::detail
