// SPDX-License-Identifier: MIT
// How a thread's runtime ends.
#include <cstdio>
#include <cstdlib>

#include "base/faults.hpp"
#include "base/flag_guard.hpp"
#include "cancellation/asked.hpp"
#include "cancellation/interrupt.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"
#include "fibers/family.hpp"
#include "fibers/fiber_end.hpp"
#include "threads/job_starter.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

void end_locals(control_block& fiber) noexcept {
  cold_part* part = cold_if_any(fiber);
  if (part == nullptr) return;
  ++fiber.shields;
  part->locals.end();
  --fiber.shields;
}

}  // namespace

const char* thread_state::in_use() const noexcept {
  if (calls_main) return "this thread is in run(), or in the function of a motet::thread";
  if (foreign) return "this is a visit to a foreign thread";
  if (!may_switch()) return "the call is within a no_switch_guard";
  if (living_count_ > 0) return "fibers that were spun before are not over";
  if (main_->scopes != nullptr) return "the call is within a time limit, or another scope";
  if (anything_pending()) return "operations or timers are pending";
  const cold_part* part = cold_if_any(*main_);
  if (part != nullptr && part->own_family.next != nullptr)
    return "the call is within a group's life";
  if (part != nullptr && !part->locals.empty()) return "the main fiber has values of a fiber_local";
  if (main_->references > 1 || mail_->blocks > 1) return "there are handles to its fibers";
  return nullptr;
}

void thread_state::close_mail() noexcept {
  cleaner.start_no_more();
  do {
    {
      const flag_guard look(looks_aside);
      collect_mail();
    }
    cleaner.reap();
  } while (!mail_->close());
  jobs.stale_inbox = nullptr;
}

/// In builds for tests: no runtime may end with a fiber, a timer or an operation left.
void thread_state::check_nothing_remains() const noexcept {
  const std::size_t count = store.timers_of_blocks();
  if (living_count_ == 0 && !anything_pending() && time.empty() && time.reserved() == count) return;
  std::fprintf(stderr, "motet: at the end %zu fibers, %zu timers of %zu, %zu pending are left\n",
               living_count_, time.size(), time.reserved() - count, wakers_[0] + wakers_[1]);
  std::abort();
}

std::exception_ptr thread_state::end(bool returns_first) noexcept {
  const bool of_thread = main_->ended_by != outcome::none;  // a function has decided that
  main_->ending = true;
  if (!of_thread) main_->ended_by = outcome::value;
  if (!of_thread && main_->has_cold_part)
    warn_of_unawaited(cold(*main_).own_family, *this, "the main fiber");
  ++main_->shields;
  accept_no_more_jobs(*this);
  come_home(*main_);
  end_children(*main_);
  end_locals(*main_);
  come_home(*main_);  // a destructor may have been elsewhere
  end_children(*main_);
  await_family(cleaner.fibers(), until::all_over, false);
  std::exception_ptr first;
  if (of_thread) {
    inherit_failure(*main_);
  } else if (returns_first) {
    first = next_failure(*main_);
  }
  give_up_failures(*main_);
  give_up_raised(*main_);
  disarm_own(time, cold(*main_));
  notify_awaiters(*main_);
  close_mail();
  end_locals(*main_);  // what was made by destructors since
  end_children(*main_);
  if constexpr (faults::enabled) check_nothing_remains();
  main_->state.store(fiber_state::dead, std::memory_order_release);  // a destructor may have waited
  return first;
}

/// The caller's ancestors may end while it lives: it is nobody's child any more.
void thread_state::end_others() noexcept {
  control_block& caller = *runner_;
  ++caller.shields;
  accept_no_more_jobs(*this);
  if (&caller != main_) {
    leave_family(caller);
    exclude_main();
  }
  const cancel_reason exits = asked_here("the process exits");
  for (control_block* fiber = fibers_.front(); fiber != nullptr; fiber = fibers_.next(*fiber)) {
    if (fiber != &caller && fiber != main_) cancel_here(*fiber, exits);
  }
  while (living_count_ > (&caller == main_ ? 0U : 1U)) {
    wait_record wait("the other fibers' end");
    exit_waiter_ = &wait;
    park(wait);
  }
  exit_waiter_ = nullptr;
  give_up_failures(*main_);
  close_mail();
}

/// Another fiber has called exit(): the main one's frames are left as they are, and it never runs
/// again.
void thread_state::exclude_main() noexcept {
  main_excluded_ = true;
  if (main_->wait != nullptr) main_->wait->claim(wake_reason::idle);
  if (main_->state.load(std::memory_order_relaxed) != fiber_state::runnable) return;
  queue_.remove(*main_);
  main_->state.store(fiber_state::waiting, std::memory_order_relaxed);
}

}}}  // namespace motet::MOTET_ABI::detail
