// SPDX-License-Identifier: MIT
// See threads/job_starter.hpp. How what is left for a thread gets fibers, in order of arrival. A
// function that neither waits nor spins nor shows its fiber to anybody leaves no trace of it: that
// fiber can go on as the next one's. So a million small ones take a stack or two.
#include "threads/job_starter.hpp"

#include <algorithm>
#include <chrono>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/fibers/fiber_start.hpp>
#include <motet/sync/time.hpp>
#include <new>
#include <optional>
#include <utility>

#include "core/event_recorder.hpp"
#include "core/hooks.hpp"
#include "fibers/family.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using namespace std::chrono_literals;

/// The longest pause between two tries to get memory; the end of the thread waits for a pause.
constexpr auto longest_pause = 50ms;

/// Whether nobody could tell the running fiber, between two functions, from one that has just been
/// spun.
bool could_be_new(const thread_state& thread) noexcept {
  const control_block& fiber = thread.running();
  return !fiber.has_cold_part && fiber.interrupts == 0 && !shared(fiber);
}

/// The running fiber changes its identity.
void begin_anew(thread_state& thread, call_site site) noexcept {
  control_block& fiber = thread.running();
  fiber.id = thread.store.next_id();
  fiber.site = site;
  fiber.spun_at = thread.reading();
  thread.error_number() = 0;
  if (thread.recorded()) thread.recording->note_run(fiber);
}

/// The body of a fiber that calls one function after the other while the fiber is like new.
class caller {
 public:
  caller(thread_state& home, job_inbox& inbox) noexcept : home_(&home), inbox_(&inbox) {
    inbox.somebody_calls = true;
  }
  caller(const caller&) = delete;
  caller& operator=(const caller&) = delete;
  /// The fiber may have been ended before its body ran.
  ~caller() { step_back(); }

  void operator()() {
    control_block& fiber = home_->running();
    while (could_be_new(*home_) && begin_next()) {
      {
        const homecoming guard(fiber);
        (*function_)();
      }
      if (!could_be_new(*home_)) return;  // its children end before what the function captured
      end_function(fiber);
      if (!could_be_new(*home_) || !step_forward()) return;
      home_->yield_after_budget();
    }
    step_back();
  }

 private:
  /// Destroys the function as the epilogue of a fiber destroys a body.
  void end_function(control_block& fiber) {
    ++fiber.shields;
    {
      const homecoming guard(fiber);
      function_.reset();
    }
    --fiber.shields;
  }

  bool begin_next() {
    if (!inbox_->pop(job_inbox::first::kind::function, function_)) return false;
    step_back();
    begin_anew(*home_, function_->site);
    return true;
  }

  /// Returns: whether this caller should call the next function: at most one caller at a time
  ///          does.
  bool step_forward() noexcept {
    if (std::exchange(inbox_->somebody_calls, true)) return false;
    is_next_ = true;
    home_->counts.note_reuse();
    return true;
  }
  void step_back() noexcept {
    if (std::exchange(is_next_, false)) inbox_->somebody_calls = false;
  }

  thread_state* home_;
  job_inbox* inbox_;
  bool is_next_ = true;
  std::optional<job_slot> function_;
};

/// Throws: std::bad_alloc; `cancelled` once the thread's function has been left.
void start_caller(thread_state& home, job_inbox& inbox, call_site site) {
  fiber_start fresh(&children_of_main(home), nullptr, body_kind_of<caller, void>::kind, site);
  ::new (fresh.body()) caller(home, inbox);
  fresh.start();
}

void start_job(thread_state& home, job& item) {
  fiber_start fresh(&children_of_main(home), nullptr, item.kind(), item.site);
  item.body(fresh.body());
  const handle fiber = fresh.start();
  item.begin(*fiber.get());
}

void start_or_refuse(thread_state& home, job& item) noexcept {
  try {
    start_job(home, item);
  } catch (const cancelled&) {
    shield([&] { item.refuse(stopped()); });
  } catch (...) {
    shield([&] { item.refuse(std::current_exception()); });
  }
}

/// Without memory for a fiber a posted function waits, for it has no caller to refuse. A job with a
/// caller is refused.
void start(thread_state& home, job_inbox& inbox, job_inbox::first next) {
  using kind = job_inbox::first::kind;
  if (std::optional<job_slot> first; next.type == kind::job && inbox.pop(kind::job, first)) {
    start_or_refuse(home, first->take_job());
    return;
  }
  for (auto pause = 1ms; next.type == kind::function && !inbox.somebody_calls;
       pause = std::min(pause * 2, longest_pause)) {
    try {
      start_caller(home, inbox, next.site);
      break;
    } catch (const std::bad_alloc&) {
      sleep_for(pause);
      next = inbox.front();
    }
  }
  home.snooze();
}

/// Starts the jobs of `inbox` until it is closed.
void start_jobs(thread_state& home, job_inbox& inbox) {
  try {
    for (auto next = inbox.await(home); next.type != job_inbox::first::kind::none;
         next = inbox.await(home))
      start(home, inbox, next);
  } catch (const cancelled&) {
    // The thread ends; the remaining jobs are dropped.
  }
}

}  // namespace

void accept_jobs(thread_state& home, std::shared_ptr<job_inbox> inbox) {
  inbox->open(home.mail());
  home.cleaner.spin([inbox] { start_jobs(*self(), *inbox); }, "motet's jobs");
  home.jobs.inbox = std::move(inbox);
  home.jobs.in_use = true;
  ++worker_threads;
}

void accept_no_more_jobs(thread_state& home) noexcept {
  if (std::exchange(home.jobs.stopped, true) || home.jobs.inbox == nullptr) return;
  home.jobs.inbox->close(home);
  home.jobs.stale_inbox = std::move(home.jobs.inbox);
}

}}}  // namespace motet::MOTET_ABI::detail
