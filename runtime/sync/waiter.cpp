// SPDX-License-Identifier: MIT
// The rare and the long parts of waiting on a primitive. See detail/sync/waiter.hpp,
// detail/sync/wait_list.hpp.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <motet/detail/sync/wait_list.hpp>
#include <stdexcept>

#include "base/system_calls.hpp"
#include "core/event_recorder.hpp"
#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// A thread that wants a lock looks so often before it yields the processor, and so often before it
/// sleeps: the holder may be a thread of a lower priority that has been preempted.
constexpr int looks = 100;
constexpr int looks_and_yields = 110;
constexpr timespec nap{0, 50'000};

/// Waits a little longer each time.
class backoff {
 public:
  void wait() noexcept {
    if (++rounds_ < looks) {
      pause();
    } else if (rounds_ < looks_and_yields) {
      ::sched_yield();
    } else {
      sys::nanosleep(&nap, nullptr);
    }
  }

 private:
  int rounds_ = 0;
};

}  // namespace

void shared_policy::contend() noexcept {
  backoff spin;
  do {
    while (held_.load(std::memory_order_relaxed)) spin.wait();
  } while (held_.exchange(true, std::memory_order_acquire));
}

/// A thread whose runtime has ended, and any thread but the process's main one, waits without a
/// fiber.
bool shared_policy::waits_first_on_main_thread() noexcept {
  return ::gettid() == ::getpid() && read_self() == 0;
}

bool shared_policy::begin_on_main_thread(thread_core*& thread) {
  if (!waits_first_on_main_thread()) return false;
  unlock();
  thread = &begin_to_wait();
  lock();
  return true;
}

thread_core& shared_policy::begin_to_wait() {
  thread_core& thread = begin_here();
  return thread;
}

void refuse_other_thread() {
  throw std::logic_error("a motet::local object is used on a second thread");
}

void throw_destroyed() {
  throw std::logic_error("the primitive was destroyed while this fiber waited on it");
}

void throw_interruption() {
  if (thread_core* thread = self_core()) thread->throw_pending();
  throw std::logic_error("this thread's runtime has ended");
}

void wait_node::await_detached() const noexcept {
  backoff delay;
  while (membership_.load(std::memory_order_acquire) == membership::detaching) delay.wait();
}

/// A thread whose runtime has ended does not wait any more.
bool waiter::block() noexcept {
  if (read_self() == ended_mark && wait.claim(wake_reason::interrupted)) return false;
  event_.wait();
  return true;
}

void waiter::notify_remotely() noexcept {
  race_point();
  if (home_ == nullptr) {
    event_.set();
    return;
  }
  handle_post = [](post& item, thread_state& home) noexcept {
    auto& owner_waiter = static_cast<waiter&>(item);
    if (!home.is_excluded(*owner_waiter.fiber)) owner_waiter.wake(home);
  };
  note_post(*fiber);
  fiber->mail->push(*this);
}

template <typename Sharing>
void wait_list::detach_all(Sharing& sharing) noexcept {
  thread_core* notifier = self_core();
  backoff departure;
  for (;;) {
    wake_list waiters;
    bool leftover = false;
    sharing.lock_at_end();
    forget_gone();
    for (wait_node *node = nodes_.front(), *next; node != nullptr; node = next) {
      next = nodes_.next(*node);
      if (take(*node, notifier)) {
        node->owner->destroyed = true;
        waiters.add(*node);
      } else if (!node->detach(true)) {
        leftover = true;
      }
    }
    sharing.unlock();
    waiters.notify(notifier);
    if (!leftover) return;
    departure.wait();
  }
}

template void wait_list::detach_all(shared_policy&) noexcept;
template void wait_list::detach_all(local_policy&) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
