// SPDX-License-Identifier: MIT
// The page of one thread: its parts, and the steps that need several of them. Which fibers run or
// are runnable is in thread_core, which the parts share.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/runtime/backend.hpp>
#include <motet/runtime/options.hpp>
#include <stdexcept>

#include "core/counting/counting.hpp"
#include "core/deadlock_detector.hpp"
#include "core/dump_request.hpp"
#include "core/event_recorder.hpp"
#include "core/job_intake.hpp"
#include "core/mail/remote_requests.hpp"
#include "core/operations.hpp"
#include "core/overflow.hpp"
#include "core/store/fiber_store.hpp"
#include "core/store/reaper.hpp"
#include "core/time/poll_schedule.hpp"
#include "core/time/timers.hpp"
#include "platform/adaptive_spin.hpp"
#include "platform/cores.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct fork_reserve;
struct pool_state;
struct worker_load;

/// Of a thread that is not motet's: its runtime lasts for a fiber's visit, which cannot wait there.
struct foreign_thread {
  std::uint64_t numbers_used = 0;  // by earlier visits to the thread; 0: there was none
};

class thread_state : public thread_core {
  std::unique_ptr<backend> kernel_;
  const options options_;

 public:
  /// Without `reserve` a fork takes memory in the child. Throws: what making the mailbox throws.
  thread_state(const options& settings, std::unique_ptr<backend> kernel,
               std::shared_ptr<fork_reserve> reserve, const foreign_thread* host = nullptr);
  thread_state(const thread_state&) = delete;
  thread_state& operator=(const thread_state&) = delete;
  ~thread_state();

  const bool foreign;
  timers time;
  poll_schedule schedule;
  adaptive_spin busy_wait;
  operations calls;
  deadlock_detector idle;
  fiber_store store;
  reaper cleaner;
  dump_request dumps;
  counting counts;
  std::unique_ptr<event_recorder> recording;  // if recorded()
  job_intake jobs;
  const pool_state* pool = nullptr;  // that its thread is a worker of
  worker_load* load = nullptr;       // as that worker
  bool looks_aside = false;          // a fiber polls the backend or the inbox, and continues
  bool calls_main = false;  // the main fiber is at home again when its function has returned
  std::exception_ptr kernel_refusal;  // why a forked child has no backend, to be thrown next

  control_block& main_fiber() noexcept { return *main_; }
  backend& kernel() noexcept { return *kernel_; }
  const options& settings() const noexcept { return options_; }

  // core/switchpoint.cpp
  /// After a call that did not wait: every 16th in a row looks around, and switches if it can.
  void yield_after_budget() noexcept;
  /// snooze() if 500 us have passed since the last poll; submits what is queued.
  void checkpoint() noexcept;
  /// Waits again, for the end of what another thread or the kernel does, after an interruption.
  void park_until_over(wait_record& wait) noexcept;

  // core/poll.cpp
  void tick_now() noexcept;
  void poll(bool wait) noexcept;
  void wait_for_work_now() noexcept;
  void collect_mail() noexcept;  // looks at the inbox
  bool look_for_events() noexcept;

  /// Called before a wait that continues even if it is interrupted.
  /// Throws: std::logic_error on a foreign thread.
  void check_may_wait() const {
    if (foreign) throw std::logic_error("a fiber cannot wait on a foreign thread");
  }

  // runtime/runtime_lifetime.cpp
  /// Returns: why run() may not take its place; or null.
  const char* in_use() const noexcept;
  /// Ends every fiber, and the mailbox. The main fiber is running.
  /// Returns: the first failure that it has not received, if `returns_first` and it runs no
  ///          thread's function; on_unhandled gets the others.
  std::exception_ptr end(bool returns_first) noexcept;
  /// Ends every fiber but the running one, which calls std::exit, and the main one.
  void end_others() noexcept;
  /// A fiber has ended; a fiber that has called std::exit may wait for that.
  void notify_exit() noexcept {
    if (exit_waiter_ != nullptr) resume(*exit_waiter_, wake_reason::handed);
  }
  /// Whether `fiber` has called std::exit and waits for the others.
  bool in_exit(const control_block& fiber) const noexcept {
    return exit_waiter_ != nullptr && exit_waiter_->fiber == &fiber;
  }
  /// Whether it is a main fiber that never runs again, because another fiber called std::exit.
  bool is_excluded(const control_block& fiber) const noexcept {
    return main_excluded_ && &fiber == main_;
  }
  // runtime/fork.cpp
  void make_fork_reserve();  // for start_over(), which takes no memory; throws std::bad_alloc
  /// In a forked child: the running fiber becomes the main one, and the only one.
  void start_over() noexcept;

 private:
  [[gnu::always_inline]] void fire_timers(bool waited) noexcept;
  void close_mail() noexcept;
  void exclude_main() noexcept;
  void check_nothing_remains() const noexcept;
  void forget_others(control_block& caller) noexcept;
  std::shared_ptr<fork_reserve> fork_reserve_;  // what the runtime of a forked child begins with
  control_block* main_ = nullptr;
  bool main_excluded_ = false;
  wait_record* exit_waiter_ = nullptr;
  alternate_stack for_signals_;
  int cancel_state_before_ = 0;  // of the thread, for pthread_cancel(3)
};

/// Returns: this thread's runtime, or null.
inline thread_state* self() noexcept {
  return static_cast<thread_state*>(self_core());
}

/// Returns: this thread's runtime, started now if there was none.
/// Throws: as begin_here().
inline thread_state& here() {
  return static_cast<thread_state&>(here_core());
}

inline thread_state& home_of(const control_block& fiber) noexcept {
  return static_cast<thread_state&>(*fiber.home);
}

}}}  // namespace motet::MOTET_ABI::detail
