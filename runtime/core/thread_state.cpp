// SPDX-License-Identifier: MIT
// See core/thread_state.hpp.
#include "core/thread_state.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "platform/mapping_guard.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Fibers are numbered within their thread; the thread's number is in the upper 24 bits.
std::uint64_t first_id() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  return (threads.fetch_add(1, std::memory_order_relaxed) << 40) + 1;
}

std::uint64_t first_number(const foreign_thread* host) noexcept {
  const std::uint64_t last_number = host == nullptr ? 0 : host->numbers_used;
  return last_number == 0 ? first_id() : last_number + 1;
}

}  // namespace

thread_state::thread_state(const options& settings, std::unique_ptr<backend> kernel,
                           std::shared_ptr<fork_reserve> reserve, const foreign_thread* host)
    : kernel_(std::move(kernel)),
      options_(settings),
      foreign(host != nullptr),
      time(*kernel_, options_),
      schedule(settings),
      calls(*this),
      idle(*this),
      store(first_number(host)),
      cleaner(*this),
      dumps(*this),
      counts(dumps.counters()),
      fork_reserve_(std::move(reserve)) {
  if (!time.virtual_time() && !foreign) busy_wait.set_length(options_.busy_wait);
  live_exceptions_ = live_exception_state();
  live_errno_ = &errno;
  mail_ = foreign ? new mailbox(mailbox::unopened{}) : new mailbox;
  const std::uint64_t number = store.next_id();
  try {
    kernel_->listen(mail_->wake_descriptor());
    reading_ = kernel_->now();
    main_ = ::new (store.memory_for_block(*this, time))
        control_block(*this, *mail_, 1, number, reading_);
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
  if constexpr (sanitizer::enabled) main_stack = this_threads_stack();
  sanitizer::describe(main_->resume_context.shadow, main_stack.bottom, main_stack.size(), false);
  fibers_.push_back(*main_);
  runner_ = main_;
  count_down_from(counts.from(schedule.countdown()));
  // To be unwound in the middle of a switch or a poll would end the process.
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_before_);
  // Whoever wants the numbers from now on finds the mailbox.
  if (counters_are_wanted.load()) begin_to_count(*this);
}

/// The mailbox is closed and every fiber but the main one is dead. Blocks that handles still refer
/// to are freed with the last of them, and the mailbox with the last block.
thread_state::~thread_state() {
  if (counts.on()) tell(*this);
  give_back_retired_stack();
  if (jobs.in_use) --worker_threads;
  {
    const mapping_guard guard;
    kernel_.reset();
  }
  {
    const std::lock_guard guard(mail_->lock());
    store.retire();
  }
  release_after_end(*main_);
  ::pthread_setcancelstate(cancel_state_before_, nullptr);
}

}}}  // namespace motet::MOTET_ABI::detail
