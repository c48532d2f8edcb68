// SPDX-License-Identifier: MIT
// See motet/threads/offload.hpp. The remote_wait is in the caller's frame, even for a call that can
// be abandoned: a caller that abandons it announces that before the offload thread announces the
// end of the call, or else waits for the notification.
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <motet/base/errors.hpp>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/sync/future.hpp>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "base/remote_work.hpp"
#include "core/hooks.hpp"
#include "core/mail/remote_wait.hpp"
#include "core/thread_state.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/signal_mask.hpp"
#include "platform/simulated_system.hpp"
#include "threads/await_thread.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: false if there is no thread for a call of motet's own: this one is blocked then, as for
///          calls on files.
bool submit(blocking_call& work) {
  const int error = blocking_pool::submit(work);
  if (error == 0) return true;
  if (error == EDEADLK) {
    throw deadlock(
        "offload(): all threads wait for jobs that are offloaded in turn, or were "
        "abandoned to running jobs: this call would never end");
  }
  if (work.pool == offload_pool::own) return false;
  throw std::system_error(error, std::system_category(), "offload(): no thread could be created");
}

/// A call that waits for so long for a thread is no accident of the moment.
constexpr std::chrono::seconds long_in_line{1};

const char* calls_of(offload_pool pool) noexcept {
  switch (pool) {
    case offload_pool::own:
      return "calls on files and processes";
    case offload_pool::names:
      return "look-ups of names";
    case offload_pool::calls:
      break;
  }
  return "offloaded calls";
}

std::string text_of(const blocking_pool::congestion& news, offload_pool pool) {
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(news.longest);
  std::string text = std::to_string(news.load.in_line) + " " + calls_of(pool) +
                     " have no thread: all " + std::to_string(news.load.threads) + " (limit " +
                     std::to_string(news.limit);
  if (news.abandoned_count > 0)
    text += ", " + std::to_string(news.abandoned_count) + " abandoned by their callers";
  text += ") are busy, " + std::to_string(news.from_site) + " with calls";
  if (news.site.line != 0) {
    text += std::string(" from ") + news.site.file + ":" + std::to_string(news.site.line);
  }
  text += ", the oldest for " + std::to_string(longest.count()) + " ms";
  if (pool == offload_pool::calls) text += "; options.offload_limit allows more";
  return text;
}

void give_notice(thread_state& thread, blocking_call& call, clock::duration stuck_for) noexcept {
  const auto news = blocking_pool::congestion_of(call, stuck_for);
  if (!news) return;
  try {
    notice(thread.settings(), text_of(*news, call.pool));
  } catch (const std::bad_alloc&) {
    // A notice is no reason to fail.
  }
}

}  // namespace

bool await_thread(remote_wait& end, blocking_call& call) noexcept {
  thread_state& thread = *self();
  if (!call.waited || thread.time.virtual_time()) return end.await();
  switch (end.await_until(thread.time.after(long_in_line))) {
    case remote_wait::result::over:
      return true;
    case remote_wait::result::late:
      give_notice(thread, call, {});
      return end.await();
    default:
      // Calls that are given up sooner would starve in silence.
      give_notice(thread, call, long_in_line);
      return false;
  }
}

void end_runtime_of_job() noexcept {
  if (thread_state* thread = self()) hooks.end_session(thread->main_fiber(), false);
}

void throw_from_job(std::exception_ptr error) {
  std::rethrow_exception(as_seen_by_others(std::move(error), "an offloaded job"));
}

namespace {

/// In real time; then the call is asked to stop, and has as much time again.
constexpr std::chrono::seconds longest_in_simulation{20};

[[noreturn]] void give_up_call(call_site site) noexcept {
  std::fprintf(stderr,
               "motet: an offloaded call of %s:%u does not end: in a simulation nothing else runs "
               "meanwhile\n",
               site.file, site.line);
  std::abort();
}

/// In a simulation a call begins when that says so, and all else stands still until it has ended.
template <typename Call>
bool performed_in_simulation(blocking_call& request, std::stop_source& stop, Call call) {
  simulated_system* const system = simulated_system::present();
  if (system == nullptr) return false;
  system->await_offload_thread();
  std::promise<void> end;
  std::future<void> has_ended = end.get_future();
  std::thread worker([&] {
    call();
    end_runtime_of_job();
    end.set_value();
  });
  if (has_ended.wait_for(longest_in_simulation) != std::future_status::ready) stop.request_stop();
  if (has_ended.wait_for(longest_in_simulation) != std::future_status::ready)
    give_up_call(request.site);
  worker.join();
  return true;
}

}  // namespace

void lent_call::await_end() {
  thread_state* thread = self();
  if (thread == nullptr) {
    call();
    return;
  }
  thread->deliver();
  thread->check_may_wait();
  if (performed_in_simulation(*this, stop_, [this] { call(); })) return;
  remote_wait end("end of an offloaded job");
  caller_ = &end;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &signals_);
  if (!submit(*this)) {
    call();
    return;
  }
  const remote_work work;
  if (await_thread(end, *this)) return;
  if (blocking_pool::withdraw(*this)) thread->throw_pending();
  stop_.request_stop();
  end.await_end();
}

bool lent_call::run() noexcept {
  const signal_mask of_caller(SIG_SETMASK, signals_);
  call();
  end_runtime_of_job();
  return true;
}

void lent_call::notify() noexcept {
  caller_->end();
}

void owned_call::await_end(owned<owned_call>& call) {
  owned_call& lent = *call;
  thread_state* thread = self();
  if (thread == nullptr) {
    lent.call();
    return;
  }
  thread->deliver();
  if (performed_in_simulation(lent, lent.stop_, [&] { lent.call(); })) return;
  remote_wait end("end of an offloaded job");
  lent.caller_ = &end;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &lent.signals_);
  if (!submit(lent)) {
    lent.call();
    return;
  }
  const remote_work work;
  if (await_thread(end, lent)) return;
  if (blocking_pool::withdraw(lent)) thread->throw_pending();
  std::stop_source stop = lent.stop_;
  phase state = phase::awaited;
  blocking_pool::mark_abandoned(lent);
  race_point();
  if (lent.phase_.compare_exchange_strong(state, phase::abandoned)) {
    call.release();
    blocking_pool::end_wait_of_caller();
    stop.request_stop();
    thread->throw_pending();
  }
  end.await_end();
}

bool owned_call::run() noexcept {
  const signal_mask of_caller(SIG_SETMASK, signals_);
  if (phase_.load() == phase::awaited) call();
  end_runtime_of_job();
  race_point();
  if (phase_.exchange(phase::over) == phase::awaited) return true;
  delete this;
  end_runtime_of_job();  // of a destructor
  return false;
}

void owned_call::notify() noexcept {
  caller_->end();
}

}}}  // namespace motet::MOTET_ABI::detail
