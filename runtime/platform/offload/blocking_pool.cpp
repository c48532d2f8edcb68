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
#include <utility>

#include "base/faults.hpp"
#include "platform/offload/offload_room.hpp"
#include "platform/signal_mask.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace blocking_pool {

namespace {

thread_local constinit offload_worker* here = nullptr;  // in the frame of serve()

constexpr char name[] = "motet offload";

/// The lock is held. From here on the thread is not counted as idle; its name says that it ends.
void leave(room& target) noexcept {
  --target.idle_count;
  --target.threads;
  here->unlink();
  ::pthread_setname_np(::pthread_self(), name_of_ended);
}

/// Counts the thread as idle, releases the lock, tells the caller of `done`, and waits for a call.
/// Returns: the next call; null if none came for so long that the thread has left the set.
blocking_call* stay_idle(offload_worker& worker, std::unique_lock<std::mutex>& held,
                         blocking_call* done) noexcept {
  idle_thread self(worker);
  worker.works_in->idle.push_front(self);
  ++worker.works_in->idle_count;
  held.unlock();
  race_point();
  if (done != nullptr) done->notify();
  if (worker.stays) {
    self.event.wait();
    return self.given;
  }
  self.event.wait_until(std::chrono::steady_clock::now() + idle_time.load());
  race_point();
  held.lock();
  if (self.linked()) {
    self.unlink();
    leave(*worker.works_in);
    return nullptr;
  }
  held.unlock();
  self.event.wait();  // the thread that has handed the call over is just setting the event
  return self.given;
}

/// A call that has forked returns in the child as well, where this thread is alone and in no set.
void serve(blocking_call* work) noexcept {
  thread_set& all = thread_set::get();
  const std::uint32_t began_in = this_process();
  std::unique_lock held(all.lock);
  offload_worker worker;
  here = &worker;
  worker.works_in = &all.of(*work);
  worker.works_in->workers.push_back(worker);
  note_worker_of(worker, *work);
  held.unlock();
  while (work != nullptr) {
    blocking_call* done = work->run() ? work : nullptr;
    race_point();
    if (this_process() != began_in) return;
    held.lock();
    note_done(worker, done);
    work = next_for(worker);
    if (work == nullptr) {
      work = stay_idle(worker, held, done);
    } else {
      held.unlock();
      if (done != nullptr) done->notify();
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
  if (const int refused = faults::next("pthread_create"); refused != 0) return refused;
  const signal_mask masked(SIG_BLOCK, all_but_faults());
  pthread_t made{};
  const int error = ::pthread_create(&made, nullptr, &thread_main, &first);
  if (error == 0) ::pthread_detach(made);
  return error;
}

/// The lock is held. Begins a thread that makes the call `first`.
/// Returns: 0, or an errno value.
int grow(room& target, blocking_call& first) noexcept {
  const int error = begin_thread(first);
  if (error != 0) return error;
  ++target.threads;
  target.note_begun();
  return 0;
}

/// The lock is held, and one thread fewer is busy: gives calls in line to other threads.
void give_out(room& target) noexcept {
  while (target.may_begin()) {
    line_of_calls& from = target.nested.empty() ? target.line : target.nested;
    blocking_call* next = from.front();
    if (next == nullptr) return;
    line_of_calls::remove(*next);
    if (idle_thread* idle = hand_over(target, *next)) {
      idle->event.set();
    } else if (!target.may_grow() || grow(target, *next) != 0) {
      from.push_front(*next);
      return;
    }
  }
}

/// The lock is held. Gives `work` to a thread, or puts it in line.
/// Returns: as submit(); and in `idle` the idle thread that has got the call, whose event the
/// caller
///          sets.
int place(room& target, blocking_call& work, idle_thread*& idle) noexcept {
  if (target.may_begin()) {
    idle = hand_over(target, work);
    if (idle != nullptr) return 0;
    int error = EDEADLK;
    if (target.may_grow()) error = grow(target, work);
    if (error == 0) return 0;
    const bool stuck = target.threads == target.excused;
    if (stuck &&
        (error != EDEADLK || (work.nested_in != nullptr && work.nested_in->works_in == &target))) {
      return error;
    }
  }
  (work.nested_in == nullptr ? target.line : target.nested).push_back(work);
  work.waited = true;
  if (target.stuck_since == clock::time_point())
    target.stuck_since = std::chrono::steady_clock::now();
  return 0;
}

}  // namespace

int submit(blocking_call& work) noexcept {
  thread_set& all = thread_set::get();
  race_point();
  std::unique_lock held(all.lock);
  room* entered = here == nullptr ? nullptr : here->works_in;
  if (entered != nullptr) begin_wait(*here, work);
  idle_thread* idle = nullptr;
  const int error = place(all.of(work), work, idle);
  if (error != 0) end_wait_for(work);
  if (entered != nullptr) give_out(*entered);
  held.unlock();
  race_point();
  if (idle != nullptr) idle->event.set();
  return error;
}

bool withdraw(blocking_call& work) noexcept {
  race_point();
  const std::lock_guard held(thread_set::get().lock);
  if (!line_of_calls::contains(work)) return false;
  line_of_calls::remove(work);
  end_wait_for(work);
  return true;
}

void will_leave(blocking_call& work) noexcept {
  thread_set& all = thread_set::get();
  race_point();
  const std::lock_guard held(all.lock);
  work.left = true;
  if (work.by == nullptr) return;
  note_worker_of(*work.by, work);
  give_out(*work.by->works_in);
}

void has_left() noexcept {
  race_point();
  const std::lock_guard held(thread_set::get().lock);
  if (here != nullptr) end_wait(*here);
}

void keep_this_thread() noexcept {
  here->stays = true;
}

namespace {

constexpr std::chrono::seconds between_news{10};

set_load load_of(room& one) noexcept {
  set_load found{one.threads, one.idle_count, 0};
  for (line_of_calls* line : {&one.nested, &one.line}) {
    for (auto* call = line->front(); call != nullptr; call = line->next(*call)) ++found.in_line;
  }
  return found;
}

bool same_place(const call_site& a, const call_site& b) noexcept {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}

}  // namespace

set_load load() noexcept {
  thread_set& all = thread_set::get();
  const std::lock_guard held(all.lock);
  set_load found;
  for (room* each : {&all.calls, &all.own, &all.names}) {
    const set_load part = load_of(*each);
    found.threads += part.threads;
    found.idle += part.idle;
    found.in_line += part.in_line;
  }
  return found;
}

/// The most frequent site is found by a walk for each: only when calls have waited for long.
std::optional<congestion> take_news_of(blocking_call& waiting, clock::duration at_least) noexcept {
  thread_set& all = thread_set::get();
  const std::lock_guard held(all.lock);
  room& target = all.of(waiting);
  const clock::time_point present = std::chrono::steady_clock::now();
  const bool told = target.told != clock::time_point() && present - target.told < between_news;
  const bool stuck =
      target.stuck_since != clock::time_point() && present - target.stuck_since >= at_least;
  if (!line_of_calls::contains(waiting) || told || !stuck) return {};
  target.told = present;
  congestion found;
  found.of = load_of(target);
  found.limit = target.most.load();
  for (auto* each = target.workers.front(); each != nullptr; each = target.workers.next(*each)) {
    if (each->left) ++found.left;
    std::size_t count = 0;
    clock::time_point first = present;
    for (auto* same = each; same != nullptr; same = target.workers.next(*same)) {
      if (same->since == clock::time_point() || !same_place(same->site, each->site)) continue;
      ++count;
      first = std::min(first, same->since);
    }
    if (count <= found.from_site) continue;
    found.site = each->site;
    found.from_site = count;
    found.longest = present - first;
  }
  return found;
}

standstill::standstill() noexcept : held_(thread_set::get().lock) {}

std::size_t standstill::idle() const noexcept {
  const thread_set& all = thread_set::get();
  return all.calls.idle_count + all.own.idle_count + all.names.idle_count;
}

void lock() noexcept {
  thread_set::get().lock.lock();
}

void unlock() noexcept {
  thread_set::get().lock.unlock();
}

void abandon() noexcept {
  thread_set& all = thread_set::get();
  all.calls.abandon();
  all.own.abandon();
  all.names.abandon();
  here = nullptr;
  all.lock.unlock();
}

}}}}  // namespace motet::MOTET_ABI::detail::blocking_pool
