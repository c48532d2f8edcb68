// SPDX-License-Identifier: MIT
// How a thread's runtime begins and ends.
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "ground/mapping_guard.hpp"
#include "ground/ticks.hpp"
#include "heart/hooks.hpp"
#include "heart/recording/recorder.hpp"
#include "heart/thread_state.hpp"
#include "interruption/asked.hpp"
#include "interruption/interrupt.hpp"
#include "life/family.hpp"
#include "life/fiber_end.hpp"
#include "process/debugger_page.hpp"
#include "threads/job_starter.hpp"
#include "words/faults.hpp"
#include "words/flag_guard.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Fibers are numbered within their thread; the thread's number is in the upper 24 bits.
std::uint64_t first_id() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  return (threads.fetch_add(1, std::memory_order_relaxed) << 40) + 1;
}

std::uint64_t first_number(const foreign_thread* visited) noexcept {
  const std::uint64_t used = visited == nullptr ? 0 : visited->numbers_used;
  return used == 0 ? first_id() : used + 1;
}

void end_locals(control_block& fiber) noexcept {
  cold_part* part = cold_if_any(fiber);
  if (part == nullptr) return;
  ++fiber.shields;
  part->locals.end();
  --fiber.shields;
}

}  // namespace

thread_state::thread_state(const options& chosen, std::unique_ptr<backend> kernel,
                           const foreign_thread* visited)
    : kernel_(std::move(kernel)),
      options_(chosen),
      foreign(visited != nullptr),
      time(*kernel_, options_),
      schedule(chosen),
      calls(*this),
      idle(*this),
      store(first_number(visited)),
      cleaner(*this),
      dumps(*this),
      counted(dumps.counters()) {
  if (!time.virtual_time() && !foreign) adaptive_spin_.set_length(options_.busy_wait);
  live_exceptions_ = live_exception_state();
  live_errno_ = &errno;
  mail_ = foreign ? new mailbox(mailbox::unopened{}) : new mailbox;
  const std::uint64_t number = store.next_id();
  try {
    if (!foreign) make_fork_reserve();
    kernel_->listen(mail_->wake_descriptor());
    reading_ = kernel_->now();
    main_ = ::new (store.room_for_block(time)) control_block(*this, *mail_, 1, number, reading_);
  } catch (...) {
    mailbox::dispose(mail_);
    throw;
  }
  mail_->blocks = 1;
  main_->is_main = true;
  store.number_scopes_from(number);
  cleaner.fibers().owner = main_;
  main_->state.store(fiber_state::running, std::memory_order_relaxed);
  stack main_stack;
  if constexpr (sanitizer::any) main_stack = this_threads_stack();
  sanitizer::describe(main_->where.watched, main_stack.bottom, main_stack.size(), false);
  fibers_.push_back(*main_);
  running_ = main_;
  count_down_from(counted.from(schedule.countdown()));
  // To be unwound in the middle of a switch or a poll would end the process.
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_before_);
  write_debugger_page(*this);
  // Whoever wants the numbers from now on finds the mailbox.
  if (counters_are_wanted.load()) begin_to_count(*this);
}

/// The mailbox is closed and every fiber but the main one is dead. Blocks that handles still refer
/// to are freed with the last of them, and the mailbox with the last block.
thread_state::~thread_state() {
  if (counted.on()) tell(*this);
  give_back_left_stack();
  if (jobs.taken) --worker_threads;
  {
    const mapping_guard guard;
    kernel_.reset();
  }
  {
    const std::lock_guard guard(mail_->lock());
    store.leave();
  }
  release_after_end(*main_);
  ::pthread_setcancelstate(cancel_state_before_, nullptr);
}

const char* thread_state::in_use() const noexcept {
  if (calls_main) return "this thread is in run(), or in the function of a motet::thread";
  if (foreign) return "this is a visit to a foreign thread";
  if (!may_leave()) return "the call is within a no_switch_guard";
  if (living_ > 0) return "fibers that were spun before are not over";
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
  jobs.closed = nullptr;
}

/// In builds for tests: no runtime may end with a fiber, a timer or an operation left.
void thread_state::check_nothing_left() const noexcept {
  const std::size_t lasting = store.timers_of_blocks();
  if (living_ == 0 && !anything_pending() && time.empty() && time.reserved() == lasting) return;
  std::fprintf(stderr, "motet: at the end %zu fibers, %zu timers of %zu, %zu pending are left\n",
               living_, time.size(), time.reserved() - lasting, pending_[0] + pending_[1]);
  std::abort();
}

std::exception_ptr thread_state::end(bool leave_first) noexcept {
  const bool of_thread = main_->ended_by != outcome::none;  // a function has decided that
  main_->ending = true;
  if (!of_thread) main_->ended_by = outcome::value;
  if (!of_thread && main_->has_cold_part)
    warn_of_unawaited(cold(*main_).own_family, *this, "the main fiber");
  ++main_->shields;
  take_no_more_jobs(*this);
  come_home(*main_);
  end_children(*main_);
  end_locals(*main_);
  come_home(*main_);  // a destructor may have been elsewhere
  end_children(*main_);
  await_family(cleaner.fibers(), until::all_over, false);
  std::exception_ptr first;
  if (of_thread) {
    inherit_failure(*main_);
  } else if (leave_first) {
    first = next_failure(*main_);
  }
  give_up_failures(*main_);
  give_up_raised(*main_);
  disarm_own(time, cold(*main_));
  notify_awaiters(*main_);
  close_mail();
  end_locals(*main_);  // what was made by destructors since
  end_children(*main_);
  if constexpr (faults::enabled) check_nothing_left();
  main_->state.store(fiber_state::dead, std::memory_order_release);  // a destructor may have waited
  return first;
}

/// The caller's ancestors may end while it lives: it is nobody's child any more.
void thread_state::end_others() noexcept {
  control_block& caller = *running_;
  ++caller.shields;
  take_no_more_jobs(*this);
  if (&caller != main_) {
    leave_family(caller);
    leave_out_main();
  }
  const cancel_reason exits = asked_here("the process exits");
  for (control_block* fiber = fibers_.front(); fiber != nullptr; fiber = fibers_.next(*fiber)) {
    if (fiber != &caller && fiber != main_) cancel_here(*fiber, exits);
  }
  while (living_ > (&caller == main_ ? 0U : 1U)) {
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
void thread_state::leave_out_main() noexcept {
  main_left_out_ = true;
  if (main_->wait != nullptr) main_->wait->claim(wake_reason::idle);
  if (main_->state.load(std::memory_order_relaxed) == fiber_state::runnable) queue_.remove(*main_);
}

}}}  // namespace motet::MOTET_ABI::detail
