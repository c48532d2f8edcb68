// SPDX-License-Identifier: MIT
// How a thread's runtime begins and ends.
#include "thread_state.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "ticks.hpp"

namespace motet::detail {

namespace {

/// Fibers are numbered within their thread; the thread's number is in the upper half.
std::uint64_t first_id() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  return (threads.fetch_add(1, std::memory_order_relaxed) << 32) + 1;
}

}  // namespace

thread_state::thread_state(const options& chosen, std::unique_ptr<backend> kernel)
    : live_exceptions_(live_exception_state()),
      live_errno_(&errno),
      ticks_between_polls_(ticks_in(chosen.time_between_polls)),
      kernel_(std::move(kernel)),
      mail_(new mailbox),
      options_(chosen),
      next_id_(first_id()) {
  try {
    kernel_->listen(mail_->wake_descriptor());
    reading_ = kernel_->now();
    reserve_timers(1);
    main_ = take_block();
  } catch (...) {
    mailbox::dispose(mail_);
    throw;
  }
  main_->is_main = true;
  last_scope_ = next_id_;
  main_->id = next_id_++;
  main_->references = 1;
  main_->own.owner = main_;
  main_->spun_at = reading_;
  main_->state.store(fiber_state::running, std::memory_order_relaxed);
  const stack own = this_threads_stack();
  sanitizer::describe(main_->where.watched, own.bottom, own.size(), false);
  fibers_.push_back(*main_);
  running_ = main_;
  set_countdown();
  // Virtual time would jump to the report while another thread is about to do its part.
  if (kernel_->name() == "sim") options_.deadlock_report = std::chrono::milliseconds(0);
}

/// The mailbox is closed and every fiber but the main one is dead. Blocks that handles still refer
/// to are freed with the last of them, and the mailbox with the last block.
thread_state::~thread_state() {
  {
    const sanitizer::mapping_guard guard;
    kernel_.reset();
  }
  for (control_block* unused : free_blocks_) ::operator delete(unused);
  release_after_end(*main_);
}

std::vector<std::exception_ptr> thread_state::untold() noexcept {
  std::vector<std::exception_ptr> failures;
  while (control_block* failed = take_failure(*main_, nullptr)) {
    failures.push_back(failed->error);
    release(*failed);
  }
  return failures;
}

std::vector<std::exception_ptr> thread_state::end() noexcept {
  main_->ending = true;
  end_children(*main_);
  std::vector<std::exception_ptr> failures = untold();
  tell_awaiters(*main_);
  while (!mail_->close()) collect_mail();
  return failures;
}

/// The caller's ancestors may end while it lives: it is nobody's child any more.
std::vector<std::exception_ptr> thread_state::end_others() noexcept {
  control_block& caller = *running_;
  if (&caller != main_) leave_family(caller);
  for (control_block* fiber = fibers_.front(); fiber != nullptr; fiber = fibers_.next(*fiber)) {
    if (fiber != &caller && fiber != main_) cancel(*fiber, "the process exits");
  }
  ++caller.shields;
  while (living_ > (&caller == main_ ? 0U : 1U)) {
    wait_record wait("the other fibers' end");
    exit_waiter_ = &wait;
    park(wait);
  }
  std::vector<std::exception_ptr> failures = untold();
  while (!mail_->close()) collect_mail();
  return failures;
}

void thread_state::notice(std::string_view line) noexcept {
  try {
    if (options_.on_notice) {
      options_.on_notice(line);
      return;
    }
  } catch (...) {
    // A notice is no reason to fail; it goes where notices go by default.
  }
  std::fprintf(stderr, "motet: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace motet::detail
