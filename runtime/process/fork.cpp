// SPDX-License-Identifier: MIT
// fork(2) with a live runtime. In the child only the calling fiber exists: it becomes the main
// fiber, its scopes stay armed, it has no children and a mailbox of its own; whatever the kernel
// does for the parent is let go of untouched. Handles to other fibers say what was when the
// process forked. The parent notices nothing.
#include <pthread.h>

#include <motet/detail/ground/process.hpp>

#include "ground/cores.hpp"
#include "ground/mapping_guard.hpp"
#include "ground/offload_threads.hpp"
#include "heart/roster.hpp"
#include "heart/thread_state.hpp"
#include "heart/travel_hooks.hpp"
#include "life/origin.hpp"
#include "process/late_backend.hpp"
#include "words/remote_work.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

void abandon(family& left) noexcept {
  left.children.abandon();
  left.size = left.lasting = 0;
  left.waiter = nullptr;
  left.failing = false;
  if (!left.is_group) return;
  auto& group = static_cast<group_family&>(left);
  while (group.ended.pop_front() != nullptr) {
  }
  group.for_room.abandon();
  group.promised.abandon();
  group.promises = 0;
  group.other_failures = nullptr;
}

}  // namespace

/// Runs in the child, and on the only thread that is left there.
void thread_state::start_over() noexcept {
  kernel_->abandon();
  mailbox& fresh = *new mailbox(mailbox::unopened{});
  kernel_ = std::make_unique<late_backend>([this, &fresh] {
    fresh.open();
    auto made = kernel_for(options_);
    made->listen(fresh.wake_descriptor());
    return made;
  });
  control_block& caller = *running_;
  timers_.keep_those_of(caller);
  forget_others(caller);
  fresh.blocks = 1;
  mail_ = caller.mail = &fresh;
  main_ = &caller;
  calls_main_ = true;  // where it was spun
  pending_ = {};
  pending_[caller.transient ? 1 : 0] = timers_.size();
  timers_wanted_ = timers_of_a_fiber + timers_of_scopes(caller.scopes);
  report_at_ = idle_until_ = clock::time_point::max();
  dump_wanted_.store(false);
  place_.start_over(*this);
  awake_thread::wake();
  takes_jobs_ = false;  // nobody is there to give it any
  jobs_ = nullptr;
  set_countdown();
}

void thread_state::forget_others(control_block& caller) noexcept {
  queue_ = {};
  operations_.abandon();
  closing_.abandon();
  unreferred_.abandon();
  abandon(house_);
  house_.owner = &caller;
  reaping_ = false;
  living_ = 0;
  exit_waiter_ = nullptr;
  fibers_.abandon();
  fibers_.push_back(caller);
  for (family* each = &cold(caller).own; each != nullptr; each = each->next) abandon(*each);
  cold(caller).failures = nullptr;
  cold(caller).caller = nullptr;
  caller.interrupts &= static_cast<std::uint8_t>(~interrupt_failure);
  caller.awaiters.abandon();
  caller.is_main = true;
  caller.parent = nullptr;
  caller.belongs_to = nullptr;
  if (caller.went_abroad.load(std::memory_order_relaxed)) requests_of(caller).abandon();
  blocks_.abandon(caller);
}

namespace {

void lock_all() {
  mapping_guard::lock();
  offload_threads::lock();
  mailbox::lock_all();
  origins::lock();
}

void unlock_all() {
  origins::unlock();
  mailbox::unlock_all();
  offload_threads::unlock();
  mapping_guard::unlock();
}

void start_over_in_child() {
  process_generation.fetch_add(1, std::memory_order_relaxed);
  count_threads_anew();
  mapping_guard::unlock();
  origins::unlock();
  mailbox::abandon_all();
  offload_threads::abandon();
  work_elsewhere::abandon();
  roster_entry::abandon_all();
  if (thread_state* thread = self()) thread->start_over();
}

/// When the library is loaded: whoever waits first, perhaps a thread without fibers, holds a lock.
[[maybe_unused]] const int hooked = ::pthread_atfork(&lock_all, &unlock_all, &start_over_in_child);

}  // namespace

constinit std::atomic<std::uint32_t> process_generation{0};

}}}  // namespace motet::MOTET_ABI::detail
