// SPDX-License-Identifier: MIT
// See platform/offload/blocking_pool.hpp. One lock protects everything; it is held for a few
// instructions, or while a thread is created. submit() gives a call to the thread that became idle
// last, so that the others stay idle long enough to exit. A thread counts as idle before its caller
// learns that the call has ended: the caller's next submit() finds it, and the deadlock detector,
// which counts idle threads, sees it too.
#include "platform/offload/blocking_pool.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <motet/base/clock.hpp>
#include <motet/detail/base/race_point.hpp>
#include <motet/detail/platform/process.hpp>

#include "base/faults.hpp"
#include "platform/offload/offload_room.hpp"
#include "platform/signal_mask.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace blocking_pool {

namespace {

thread_local constinit offload_worker* own_worker = nullptr;  // in the frame of serve()

constexpr char name[] = "motet offload";

/// The lock is held. From here on the thread is not counted as idle; its name says that it ends.
void leave(worker_pool& target) noexcept {
  --target.idle_count;
  --target.threads;
  own_worker->unlink();
  ::pthread_setname_np(::pthread_self(), name_of_ended);
}

/// Counts the thread as idle, releases the lock, tells the caller of `call`, and waits for a call.
/// Returns: the next call; null if none came for so long that the thread has left the set.
blocking_call* stay_idle(offload_worker& worker, std::unique_lock<std::mutex>& lock,
                         blocking_call* call) noexcept {
  idle_thread self(worker);
  worker.works_in->idle.push_front(self);
  ++worker.works_in->idle_count;
  lock.unlock();
  race_point();
  if (call != nullptr) call->notify();
  if (worker.stays) {
    self.event.wait();
    return self.job;
  }
  self.event.wait_until(std::chrono::steady_clock::now() + idle_time.load());
  race_point();
  lock.lock();
  if (self.linked()) {
    self.unlink();
    leave(*worker.works_in);
    return nullptr;
  }
  lock.unlock();
  self.event.wait();  // the thread that has handed the call over is just setting the event
  return self.job;
}

/// A call that has forked returns in the child as well, where this thread is alone and in no set.
void serve(blocking_call* work) noexcept {
  thread_set& threads = thread_set::get();
  const std::uint32_t began_in = this_process();
  std::unique_lock lock(threads.lock);
  offload_worker worker;
  own_worker = &worker;
  worker.works_in = &threads.of(*work);
  worker.works_in->workers.push_back(worker);
  note_worker_of(worker, *work);
  lock.unlock();
  while (work != nullptr) {
    blocking_call* call = work->run() ? work : nullptr;
    race_point();
    if (this_process() != began_in) return;
    lock.lock();
    note_done(worker, call);
    work = next_for(worker);
    if (work == nullptr) {
      work = stay_idle(worker, lock, call);
    } else {
      lock.unlock();
      if (call != nullptr) call->notify();
    }
  }
}

void* thread_main(void* first) noexcept {
  ::pthread_setname_np(::pthread_self(), name);
  serve(static_cast<blocking_call*>(first));
  return nullptr;
}

/// Returns: 0, or an errno value.
int begin_thread(blocking_call& first) noexcept {
  if (const int fault = faults::next("pthread_create"); fault != 0) return fault;
  const signal_mask masked(SIG_BLOCK, all_but_faults());
  pthread_t id{};
  const int error = ::pthread_create(&id, nullptr, &thread_main, &first);
  if (error == 0) ::pthread_detach(id);
  return error;
}

/// The lock is held. Begins a thread that makes the call `first`.
/// Returns: 0, or an errno value.
int grow(worker_pool& target, blocking_call& first) noexcept {
  const int error = begin_thread(first);
  if (error != 0) return error;
  ++target.threads;
  target.note_begun();
  return 0;
}

/// The lock is held, and one thread fewer is busy: gives calls in line to other threads.
void give_out(worker_pool& target) noexcept {
  while (target.may_begin()) {
    line_of_calls& queue = target.nested_line.empty() ? target.line : target.nested_line;
    blocking_call* next = queue.front();
    if (next == nullptr) return;
    line_of_calls::remove(*next);
    if (idle_thread* idle = hand_over(target, *next)) {
      idle->event.set();
    } else if (!target.may_grow() || grow(target, *next) != 0) {
      queue.push_front(*next);
      return;
    }
  }
}

/// The lock is held. Gives `work` to a thread, or puts it in line.
/// Returns: as submit(); and in `idle` the idle thread that has got the call, whose event the
/// caller
///          sets.
int assign(worker_pool& target, blocking_call& work, idle_thread*& idle) noexcept {
  if (target.may_begin()) {
    idle = hand_over(target, work);
    if (idle != nullptr) return 0;
    int error = EDEADLK;
    if (target.may_grow()) error = grow(target, work);
    if (error == 0) return 0;
    const bool stuck = target.threads == target.excused_count;
    if (stuck &&
        (error != EDEADLK || (work.nested_in != nullptr && work.nested_in->works_in == &target))) {
      return error;
    }
  }
  (work.nested_in == nullptr ? target.line : target.nested_line).push_back(work);
  work.waited = true;
  if (target.stuck_since == clock::time_point())
    target.stuck_since = std::chrono::steady_clock::now();
  return 0;
}

}  // namespace

int submit(blocking_call& work) noexcept {
  thread_set& threads = thread_set::get();
  race_point();
  std::unique_lock lock(threads.lock);
  worker_pool* outer_pool = own_worker == nullptr ? nullptr : own_worker->works_in;
  if (outer_pool != nullptr) begin_wait(*own_worker, work);
  idle_thread* idle = nullptr;
  const int error = assign(threads.of(work), work, idle);
  if (error != 0) end_wait_for(work);
  if (outer_pool != nullptr) give_out(*outer_pool);
  lock.unlock();
  race_point();
  if (idle != nullptr) idle->event.set();
  return error;
}

bool withdraw(blocking_call& work) noexcept {
  race_point();
  const std::lock_guard lock(thread_set::get().lock);
  if (!line_of_calls::contains(work)) return false;
  line_of_calls::remove(work);
  end_wait_for(work);
  return true;
}

void mark_abandoned(blocking_call& work) noexcept {
  thread_set& threads = thread_set::get();
  race_point();
  const std::lock_guard lock(threads.lock);
  work.abandoned = true;
  if (work.worker == nullptr) return;
  note_worker_of(*work.worker, work);
  give_out(*work.worker->works_in);
}

void end_wait_of_caller() noexcept {
  race_point();
  const std::lock_guard lock(thread_set::get().lock);
  if (own_worker != nullptr) end_wait(*own_worker);
}

void keep_this_thread() noexcept {
  own_worker->stays = true;
}

namespace {

constexpr std::chrono::seconds between_news{10};

set_load load_of(worker_pool& calls) noexcept {
  set_load load{calls.threads, calls.idle_count, 0};
  for (line_of_calls* line : {&calls.nested_line, &calls.line}) {
    for (auto* call = line->front(); call != nullptr; call = line->next(*call)) ++load.in_line;
  }
  return load;
}

bool same_place(const call_site& a, const call_site& b) noexcept {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}

}  // namespace

set_load load() noexcept {
  thread_set& threads = thread_set::get();
  const std::lock_guard lock(threads.lock);
  set_load news;
  for (worker_pool* pool_of_set : {&threads.calls, &threads.own_calls, &threads.names}) {
    const set_load part = load_of(*pool_of_set);
    news.threads += part.threads;
    news.idle += part.idle;
    news.in_line += part.in_line;
  }
  return news;
}

/// The most frequent site is found by a walk for each: only when calls have waited for long.
std::optional<congestion> congestion_of(blocking_call& call, clock::duration at_least) noexcept {
  thread_set& threads = thread_set::get();
  const std::lock_guard lock(threads.lock);
  worker_pool& target = threads.of(call);
  const clock::time_point present = std::chrono::steady_clock::now();
  const bool recent =
      target.last_report != clock::time_point() && present - target.last_report < between_news;
  const bool stuck =
      target.stuck_since != clock::time_point() && present - target.stuck_since >= at_least;
  if (!line_of_calls::contains(call) || recent || !stuck) return {};
  target.last_report = present;
  congestion news;
  news.load = load_of(target);
  news.limit = target.limit.load();
  for (auto* worker = target.workers.front(); worker != nullptr;
       worker = target.workers.next(*worker)) {
    if (worker->abandoned) ++news.abandoned_count;
    std::size_t count = 0;
    clock::time_point first = present;
    for (auto* peer = worker; peer != nullptr; peer = target.workers.next(*peer)) {
      if (peer->begin == clock::time_point() || !same_place(peer->site, worker->site)) continue;
      ++count;
      first = std::min(first, peer->begin);
    }
    if (count <= news.from_site) continue;
    news.site = worker->site;
    news.from_site = count;
    news.longest = present - first;
  }
  return news;
}

standstill::standstill() noexcept : lock_(thread_set::get().lock) {}

std::size_t standstill::idle() const noexcept {
  const thread_set& threads = thread_set::get();
  return threads.calls.idle_count + threads.own_calls.idle_count + threads.names.idle_count;
}

void lock() noexcept {
  thread_set::get().lock.lock();
}

void unlock() noexcept {
  thread_set::get().lock.unlock();
}

void abandon() noexcept {
  thread_set& threads = thread_set::get();
  threads.calls.abandon();
  threads.own_calls.abandon();
  threads.names.abandon();
  own_worker = nullptr;
  threads.lock.unlock();
}

}}}}  // namespace motet::MOTET_ABI::detail::blocking_pool
