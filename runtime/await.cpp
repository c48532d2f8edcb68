// SPDX-License-Identifier: MIT
// Waiting for a fiber's end: at home by a record in its list of awaiters, from abroad by posts that
// go to its thread and come back, and for a thread without fibers by a futex.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "abroad.hpp"
#include "thread_state.hpp"

namespace motet::detail {

namespace {

struct home_awaiter : awaiter {
  explicit home_awaiter(const control_block& fiber) noexcept
      : wait("await of fiber", static_cast<std::int64_t>(fiber.id)) {
    tell = [](awaiter& told) noexcept {
      auto& waiting = static_cast<home_awaiter&>(told);
      return waiting.wait.fiber->home->resume(waiting.wait, wake_reason::handed);
    };
  }
  wait_record wait;
};

void await_at_home(thread_state& thread, control_block& fiber) {
  if (&fiber == &thread.running()) throw std::logic_error("a fiber cannot await itself");
  thread.deliver();
  if (fiber.dead()) {
    thread.withdraw_failure(fiber);
    thread.snooze();
    return;
  }
  home_awaiter waiting(fiber);
  fiber.awaiters.push_back(waiting);
  if (thread.park(waiting.wait) == wake_reason::handed) return;
  waiting.unlink();
  thread.throw_pending();
}

/// Puts `waiting` into the list of the fiber it waits for; on that fiber's thread.
void enlist(awaiter& waiting, control_block& fiber, thread_state& home) noexcept {
  if (!fiber.dead()) {
    fiber.awaiters.push_back(waiting);
    return;
  }
  home.withdraw_failure(fiber);
  waiting.tell(waiting);
}

/// A thread without a runtime.
struct thread_awaiter : awaiter, post {
  explicit thread_awaiter(control_block& fiber) noexcept : target(&fiber) {
    arrive = [](post& item, thread_state& home) noexcept {
      auto& waiting = static_cast<thread_awaiter&>(item);
      enlist(waiting, *waiting.target, home);
    };
    tell = [](awaiter& told) noexcept {
      std::atomic<std::uint32_t>& word = static_cast<thread_awaiter&>(told).over;
      word.store(1, std::memory_order_release);
      // The frame may be gone by now; waking a futex that is no more wakes nobody.
      ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
      return true;
    };
  }
  control_block* target;
  std::atomic<std::uint32_t> over{0};
};

void await_on_plain_thread(control_block& fiber) {
  thread_awaiter waiting(fiber);
  if (!fiber.mail->push(waiting)) return;
  while (waiting.over.load(std::memory_order_acquire) == 0) {
    ::syscall(SYS_futex, &waiting.over, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
}

/// A fiber of another thread. Each post belongs to one direction; the frame may go only when no
/// post is under way.
struct distant_awaiter : awaiter {
  struct errand : post {
    distant_awaiter* sender = nullptr;
  };

  distant_awaiter(control_block& fiber, thread_state& here) noexcept
      : target(&fiber), back(&here.mail()), wait("await of distant fiber", id_of(fiber)) {
    for (errand* each : {&enlisting, &withdrawing, &news, &withdrawn_news}) each->sender = this;
    enlisting.arrive = [](post& item, thread_state& home) noexcept {
      distant_awaiter& waiting = *static_cast<errand&>(item).sender;
      enlist(waiting, *waiting.target, home);
    };
    tell = [](awaiter& listed) noexcept {
      auto& waiting = static_cast<distant_awaiter&>(listed);
      return waiting.back->push(waiting.news);
    };
    news.arrive = [](post& item, thread_state& home) noexcept {
      distant_awaiter& waiting = *static_cast<errand&>(item).sender;
      waiting.told = true;
      home.resume(waiting.wait, wake_reason::handed);
    };
    withdrawing.arrive = [](post& item, thread_state&) noexcept {
      distant_awaiter& waiting = *static_cast<errand&>(item).sender;
      waiting.unlink();
      waiting.back->push(waiting.withdrawn_news);
    };
    withdrawn_news.arrive = [](post& item, thread_state& home) noexcept {
      distant_awaiter& waiting = *static_cast<errand&>(item).sender;
      waiting.withdrawn = true;
      home.resume(waiting.wait, wake_reason::handed);
    };
  }

  static std::int64_t id_of(const control_block& fiber) noexcept {
    return static_cast<std::int64_t>(fiber.id);
  }

  control_block* target;
  mailbox* back;
  wait_record wait;
  errand enlisting, withdrawing, news, withdrawn_news;
  bool told = false;
  bool withdrawn = false;
};

void await_from_another_thread(thread_state& thread, control_block& fiber) {
  thread.deliver();
  distant_awaiter waiting(fiber, thread);
  if (!fiber.mail->push(waiting.enlisting)) return;
  control_block& self = thread.running();
  thread.pend(self);
  const bool interrupted = thread.park(waiting.wait) == wake_reason::interrupted;
  if (interrupted) {
    // The answer to a withdrawal comes behind any news that was sent before it.
    const bool asked = fiber.mail->push(waiting.withdrawing);
    waiting.wait.interruptible = false;
    while (asked ? !waiting.withdrawn : !waiting.told) {
      waiting.wait.reopen();
      thread.park(waiting.wait);
    }
  }
  thread.unpend(self);
  if (!waiting.told) thread.throw_pending();
}

}  // namespace

void await_end(control_block& fiber) {
  thread_state* thread = self();
  if (thread == nullptr) {
    if (!fiber.dead()) await_on_plain_thread(fiber);
  } else if (&thread->mail() == fiber.mail) {
    await_at_home(*thread, fiber);
  } else if (fiber.dead()) {
    thread->deliver();
    thread->snooze();
  } else {
    await_from_another_thread(*thread, fiber);
  }
}

}  // namespace motet::detail
