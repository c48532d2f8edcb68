// SPDX-License-Identifier: MIT
// See detail/io/stream_queue.hpp.
#include <motet/detail/io/stream_queue.hpp>
#include <stdexcept>
#include <string>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct stream_wait : tagged_link<stream_wait_tag> {
  stream_wait(const char* call, int fd) noexcept : wait(call, fd) {}
  wait_record wait;
  bool closed = false;
};

/// A forked child forgets the holder and the waiters of its parent.
thread_state* stream_queue::holder() noexcept {
  if (process_.load(std::memory_order_relaxed) != this_process()) [[unlikely]] {
    waits_.abandon();
    holder_.store(nullptr, std::memory_order_relaxed);
    across_calls_ = false;
    process_.store(this_process(), std::memory_order_relaxed);
  }
  return holder_.load(std::memory_order_relaxed);
}

queue_result stream_queue::acquire(const char* call, int fd) {
  thread_state& thread = here();
  if (closed_) return queue_result::closed;
  thread_state* owner = holder();
  if (owner == nullptr) {
    holder_.store(&thread, std::memory_order_relaxed);
    user_ = &thread.running();
    return queue_result::acquired;
  }
  if (owner != &thread) {
    throw std::logic_error("a fiber of another thread has the " + std::string(call) + " " +
                           std::to_string(fd));
  }
  stream_wait waiter(call, fd);
  waiter.wait.target = &user_;
  waits_.push_back(waiter);
  if (thread.park(waiter.wait) == wake_reason::interrupted) {
    waiter.unlink();
    return queue_result::interrupted;
  }
  return waiter.closed ? queue_result::closed : queue_result::acquired;
}

/// A waiter that has just been interrupted is skipped: the next one gets the turn.
void stream_queue::release() noexcept {
  across_calls_ = false;
  thread_state& thread = *holder_.load(std::memory_order_relaxed);
  while (stream_wait* next = waits_.pop_front()) {
    user_ = next->wait.fiber;
    if (thread.resume(next->wait, wake_reason::handed)) return;
  }
  holder_.store(nullptr, std::memory_order_relaxed);
}

void stream_queue::close() noexcept {
  closed_ = true;
  thread_state* thread = holder();
  while (stream_wait* next = waits_.pop_front()) {
    next->closed = true;
    thread->resume(next->wait, wake_reason::handed);
  }
}

bool stream_queue::held_elsewhere() noexcept {
  const thread_state* owner = holder();
  return owner != nullptr && owner != self();
}

}}}  // namespace motet::MOTET_ABI::detail
