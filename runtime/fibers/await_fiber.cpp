// SPDX-License-Identifier: MIT
// Waiting for the end of a fiber of another thread; a thread without fibers blocks.
#include <motet/detail/fibers/await_fiber.hpp>
#include <motet/detail/platform/one_shot_event.hpp>
#include <stdexcept>

#include "cancellation/child_failures.hpp"
#include "core/thread_state.hpp"
#include "sync/remote_awaiter.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// The awaiter of a thread without a runtime.
struct thread_awaiter : awaiter, post {
  explicit thread_awaiter(control_block& fiber) noexcept : target(&fiber) {
    handle_post = [](post& item, thread_state&) noexcept {
      auto& record = static_cast<thread_awaiter&>(item);
      enlist(record, *record.target);
    };
    notify = [](awaiter& record) noexcept {
      static_cast<thread_awaiter&>(record).completion.set();
      return true;
    };
  }
  control_block* target;
  one_shot_event completion;
};

void await_on_plain_thread(control_block& fiber) {
  thread_awaiter record(fiber);
  if (!fiber.mail->push(record)) return;
  record.completion.wait();
}

void await_from_another_thread(thread_state& thread, control_block& fiber) {
  if (&fiber == &traveller_of(thread.running())) refuse_to_await_oneself();
  thread.deliver();
  control_block& self = thread.running();
  remote_awaiter* record = remote_awaiter::send(fiber, self);
  if (record == nullptr) return;
  thread.add_pending(self);
  thread.park(record->wait);
  thread.remove_pending(self);
  if (!record->over()) {
    if (record->give_up()) thread.throw_pending();
    thread.park_until_over(record->wait);  // the notification has been posted already
  }
  record->dispose();
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
