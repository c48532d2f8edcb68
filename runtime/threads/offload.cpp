// SPDX-License-Identifier: MIT
// See motet/offload.hpp. The remote_wait is in the frame of the caller, also for a call that can be
// left: a caller that leaves says so before the offload thread says that the call is over, or else
// waits to be told.
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/detail/words/jitter.hpp>
#include <motet/errors.hpp>
#include <motet/future.hpp>
#include <system_error>

#include "ground/offload_threads.hpp"
#include "ground/signal_mask.hpp"
#include "heart/mail/remote_wait.hpp"
#include "heart/thread_state.hpp"
#include "words/remote_work.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

void submit(blocking_call& work) {
  const int error = offload_threads::submit(work);
  if (error == EDEADLK) {
    throw deadlock(
        "all threads for offloaded jobs wait for work that is offloaded in turn, or "
        "were left to a job that goes on: this one would wait for them");
  }
  if (error != 0) throw std::system_error(error, std::system_category(), "a thread to offload to");
}

}  // namespace

void throw_from_job(std::exception_ptr error) {
  std::rethrow_exception(as_seen_by_others(std::move(error), "an offloaded job"));
}

void lent_call::await_end() {
  thread_state* thread = self();
  if (thread == nullptr) {
    call();
    return;
  }
  thread->deliver();
  thread->check_may_wait();
  remote_wait waiting("end of an offloaded job");
  caller_ = &waiting;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &signals_);
  submit(*this);
  const remote_work meanwhile;
  if (waiting.await()) return;
  if (offload_threads::withdraw(*this)) thread->throw_pending();
  stop_.request_stop();
  waiting.await_end();
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
  remote_wait waiting("end of an offloaded job");
  lent.caller_ = &waiting;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &lent.signals_);
  submit(lent);
  const remote_work meanwhile;
  if (waiting.await()) return;
  if (offload_threads::withdraw(lent)) thread->throw_pending();
  std::stop_source asked = lent.stop_;
  phase still = phase::awaited;
  offload_threads::will_leave(lent);
  jitter();
  if (lent.phase_.compare_exchange_strong(still, phase::left)) {
    call.release();
    offload_threads::has_left();
    asked.request_stop();
    thread->throw_pending();
  }
  waiting.await_end();
}

bool owned_call::run() noexcept {
  const signal_mask of_caller(SIG_SETMASK, signals_);
  if (phase_.load() == phase::awaited) call();
  end_runtime_of_job();
  jitter();
  if (phase_.exchange(phase::over) == phase::awaited) return true;
  delete this;
  end_runtime_of_job();  // of a destructor
  return false;
}

void owned_call::notify() noexcept {
  caller_->end();
}

}}}  // namespace motet::MOTET_ABI::detail
