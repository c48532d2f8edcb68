// SPDX-License-Identifier: MIT
// fork(2) with a live runtime. In the child only the calling fiber exists. It becomes the main
// fiber; its scopes stay armed; it has no children, and a mailbox of its own. Kernel state that
// belongs to the parent is abandoned untouched. Handles to other fibers return their state at the
// time of the fork. The parent is not affected.
#include <pthread.h>

#include <memory>
#include <motet/detail/platform/process.hpp>
#include <new>
#include <utility>

#include "base/remote_work.hpp"
#include "cancellation/scopes.hpp"
#include "core/event_recorder.hpp"
#include "core/hooks.hpp"
#include "core/thread_registry.hpp"
#include "core/thread_state.hpp"
#include "platform/cores.hpp"
#include "platform/mapping_guard.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "runtime/lazy_backend.hpp"
#include "runtime/run.hpp"
#include "sync/static_guards.hpp"
#include "unhandled/origin.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct fork_reserve {
  fork_reserve() = default;
  fork_reserve(const fork_reserve&) = delete;
  fork_reserve& operator=(const fork_reserve&) = delete;
  ~fork_reserve() { ::operator delete(inbox); }

  std::unique_ptr<lazy_backend> kernel = std::make_unique<lazy_backend>();
  void* inbox = ::operator new(sizeof(mailbox));
};

/// The runtime of a child needs two allocations, which its parent makes: a child could only end if
/// there were no memory.
std::shared_ptr<fork_reserve> new_fork_reserve() {
  return std::make_shared<fork_reserve>();
}

void thread_state::make_fork_reserve() {
  if (fork_reserve_ == nullptr) fork_reserve_ = new_fork_reserve();
}

std::exception_ptr make_kernel_of_child(thread_state& child) noexcept {
  try {
    static_cast<lazy_backend&>(child.kernel()).make();
    child.make_fork_reserve();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// Runs in the child, on its only thread.
void thread_state::start_over() noexcept {
  kernel_->abandon();
  make_fork_reserve();  // a child that forks before its first switchpoint has used its own
  mailbox& fresh =
      *::new (std::exchange(fork_reserve_->inbox, nullptr)) mailbox(mailbox::unopened{});
  fork_reserve_->kernel->belongs_to(fresh, options_);
  kernel_ = std::move(fork_reserve_->kernel);
  fork_reserve_.reset();
  control_block& caller = *runner_;
  const std::size_t timer_count = timers::of_a_fiber + timers_of_scopes(caller.scopes);
  time.start_over(*kernel_, caller, timer_count);
  forget_others(caller);
  caller.interrupts |= interrupt_kernel;
  fresh.blocks = 1;
  mail_ = caller.mail = &fresh;
  main_ = &caller;
  calls_main = true;  // its function returns to a frame on its own stack
  wakers_ = {};
  wakers_[caller.transient ? 1 : 0] = time.size();
  idle.start_over();
  if (recorded()) recording->abandon();
  recorded(false);
  dumps.start_over();
  awake_thread::wake();
  wakes_go_to(-1);
  jobs.forget();  // no other thread is left to give it jobs
  count_down_from(counts.from(schedule.countdown()));
  counts.start_over();
  if (counters_are_wanted.load()) begin_to_count(*this);  // the request may have been abandoned
}

void thread_state::forget_others(control_block& caller) noexcept {
  queue_.abandon();
  calls.abandon();
  cleaner.abandon(caller);
  living_count_ = 0;
  exit_waiter_ = nullptr;
  fibers_.abandon();
  fibers_.push_back(caller);
  for (family* group = &cold(caller).own_family; group != nullptr; group = group->next)
    abandon(*group);
  cold(caller).failures = nullptr;
  cold(caller).caller = nullptr;
  caller.interrupts &= static_cast<std::uint8_t>(~interrupt_failure);
  caller.awaiters.abandon();
  caller.is_main = true;
  caller.parent = nullptr;
  caller.belongs_to = nullptr;
  if (caller.known_remotely.load(std::memory_order_relaxed)) requests_of(caller).abandon();
  store.abandon(caller);
}

namespace {

void lock_all() {
  mapping_guard::lock();
  blocking_pool::lock();
  mailbox::lock_all();
  origins::lock();
  registered_thread::lock_all();
  if (hooks.lock_observers != nullptr) hooks.lock_observers();
  static_guards::lock();
}

void unlock_all() {
  static_guards::unlock();
  if (hooks.unlock_observers != nullptr) hooks.unlock_observers();
  registered_thread::unlock_all();
  origins::unlock();
  mailbox::unlock_all();
  blocking_pool::unlock();
  mapping_guard::unlock();
}

void start_over_in_child() {
  process_generation.fetch_add(1, std::memory_order_relaxed);
  count_threads_anew();
  static_guards::unlock();
  mapping_guard::unlock();
  registered_thread::unlock_all();
  if (hooks.abandon_observers != nullptr) hooks.abandon_observers();
  origins::unlock();
  mailbox::abandon_all();
  blocking_pool::abandon();
  remote_work::abandon();
  registered_thread::abandon_all();
  forget_stack_uses();
  if (thread_state* thread = self()) thread->start_over();
}

/// When the library is loaded: the first thread that waits, perhaps one without fibers, holds a
/// lock.
[[maybe_unused]] const int registration =
    ::pthread_atfork(&lock_all, &unlock_all, &start_over_in_child);

}  // namespace

}}}  // namespace motet::MOTET_ABI::detail
