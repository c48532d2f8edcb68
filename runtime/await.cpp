// SPDX-License-Identifier: MIT
// Waiting for the end of a fiber of another thread: by posts that go to its thread and come back,
// and for a thread without fibers by a futex.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <motet/detail/await.hpp>
#include <stdexcept>
#include <utility>

#include "abroad.hpp"

namespace motet::inline MOTET_ABI::detail {

namespace {

/// Puts `waiting` into the list of the fiber it waits for; on that fiber's thread.
void enlist(awaiter& waiting, control_block& fiber, thread_state& home) noexcept {
  if (!fiber.dead()) {
    fiber.awaiters.push_back(waiting);
    return;
  }
  ++fiber.references;  // tell() may give up the last one
  if (waiting.tell(waiting)) home.withdraw_failure(fiber);
  home.release_later(fiber);
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

/// A fiber of another thread, which may give up waiting while that thread is busy: so this is not
/// in its frame. Goes out to be enlisted, comes back when it is told, or is fetched by a second
/// post; whoever has it last deletes it.
struct distant_awaiter : awaiter {
  struct errand : post {
    distant_awaiter* sender = nullptr;
  };
  enum class progress { waiting, told, given_up };

  /// Throws: std::bad_alloc.
  static distant_awaiter& send(control_block& target, control_block& waiting);

  /// Calls the wait off.
  /// Returns: false if the awaited fiber has ended first; the news is under way.
  bool give_up() noexcept {
    auto expected = progress::waiting;
    if (!reached.compare_exchange_strong(expected, progress::given_up)) return false;
    if (!target.get()->mail->push(fetching)) delete this;
    return true;
  }

  handle target;
  handle from;           // keeps its thread's mailbox
  control_block* block;  // of target
  wait_record wait{"await of distant"};
  std::atomic<progress> reached{progress::waiting};
  errand enlisting, fetching, news;

 private:
  distant_awaiter(handle awaited, handle waiting) noexcept
      : target(std::move(awaited)), from(std::move(waiting)), block(target.get()) {
    wait.whom = &block;
    for (errand* each : {&enlisting, &fetching, &news}) each->sender = this;
    enlisting.arrive = [](post& item, thread_state& home) noexcept {
      distant_awaiter& self = *static_cast<errand&>(item).sender;
      enlist(self, *self.target.get(), home);
    };
    tell = [](awaiter& listed) noexcept {
      auto& self = static_cast<distant_awaiter&>(listed);
      auto expected = progress::waiting;
      if (!self.reached.compare_exchange_strong(expected, progress::told)) return false;
      self.from.get()->mail->push(self.news);
      return true;
    };
    news.arrive = [](post& item, thread_state& home) noexcept {
      home.resume(static_cast<errand&>(item).sender->wait, wake_reason::handed);
    };
    fetching.arrive = [](post& item, thread_state&) noexcept {
      distant_awaiter* self = static_cast<errand&>(item).sender;
      self->unlink();
      delete self;
    };
  }
};

distant_awaiter& distant_awaiter::send(control_block& target, control_block& waiting) {
  const auto counted = [](control_block& fiber) {
    retain(fiber);
    return handle(&fiber);
  };
  return *new distant_awaiter(counted(target), counted(waiting));
}

void await_from_another_thread(thread_state& thread, control_block& fiber) {
  thread.deliver();
  control_block& self = thread.running();
  distant_awaiter& waiting = distant_awaiter::send(fiber, self);
  if (!fiber.mail->push(waiting.enlisting)) {
    delete &waiting;
    return;
  }
  thread.pend(self);
  const bool interrupted = thread.park(waiting.wait) == wake_reason::interrupted;
  if (interrupted && waiting.give_up()) {
    thread.unpend(self);
    thread.throw_pending();
  }
  if (interrupted) {
    waiting.wait.reopen();
    waiting.wait.interruptible = false;
    thread.park(waiting.wait);
  }
  thread.unpend(self);
  delete &waiting;
}

}  // namespace

void refuse_to_await_oneself() {
  throw std::logic_error("a fiber cannot await itself");
}

void claim_failure(control_block& dead) noexcept {
  home_of(dead).withdraw_failure(dead);
}

void await_elsewhere(control_block& fiber) {
  thread_state* thread = self();
  if (thread == nullptr) {
    if (!fiber.dead()) await_on_plain_thread(fiber);
  } else if (fiber.dead()) {
    thread->deliver();
    thread->snooze();
  } else {
    await_from_another_thread(*thread, fiber);
  }
}

}  // namespace motet::inline MOTET_ABI::detail
