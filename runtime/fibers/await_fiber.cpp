// SPDX-License-Identifier: MIT
// Waiting for the end of a fiber of another thread; a thread without fibers blocks.
#include <motet/detail/fibers/await_fiber.hpp>
#include <motet/detail/platform/one_shot_event.hpp>
#include <stdexcept>

#include "cancellation/child_failures.hpp"
#include "cancellation/remote_verbs.hpp"
#include "sync/remote_awaiter.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// The awaiter of a thread without a runtime.
struct thread_awaiter : awaiter, post {
  explicit thread_awaiter(control_block& fiber) noexcept : target(&fiber) {
    handle_post = [](post& item, thread_state&) noexcept {
      auto& waiting = static_cast<thread_awaiter&>(item);
      enlist(waiting, *waiting.target);
    };
    notify = [](awaiter& record) noexcept {
      static_cast<thread_awaiter&>(record).over.set();
      return true;
    };
  }
  control_block* target;
  one_shot_event over;
};

void await_on_plain_thread(control_block& fiber) {
  thread_awaiter waiting(fiber);
  if (!fiber.mail->push(waiting)) return;
  waiting.over.wait();
}

void await_from_another_thread(thread_state& thread, control_block& fiber) {
  if (&fiber == &traveller_of(thread.running())) refuse_to_await_oneself();
  thread.deliver();
  control_block& self = thread.running();
  remote_awaiter* waiting = remote_awaiter::send(fiber, self);
  if (waiting == nullptr) return;
  thread.add_pending(self);
  thread.park(waiting->wait);
  thread.remove_pending(self);
  if (!waiting->over()) {
    if (waiting->give_up()) thread.throw_pending();
    thread.park_until_over(waiting->wait);  // the notification has been posted already
  }
  waiting->dispose();
}

}  // namespace

void refuse_to_await_oneself() {
  throw std::logic_error("await(): a fiber cannot await itself");
}

void claim_failure(control_block& dead) noexcept {
  withdraw_failure(dead);
}

void await_remotely(control_block& fiber) {
  thread_state* thread = self();
  if (thread == nullptr) {
    if (!fiber.dead()) await_on_plain_thread(fiber);
  } else if (fiber.dead()) {
    thread->deliver();
    thread->snooze();
  } else {
    await_from_another_thread(*thread, fiber);
  }
  if (thread != nullptr && fiber.ended_by == outcome::error) spare_proxy_of(fiber, *thread);
}

}}}  // namespace motet::MOTET_ABI::detail
