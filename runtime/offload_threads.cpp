// SPDX-License-Identifier: MIT
// See offload_threads.hpp. All is under one lock, which is held for a few instructions, or for as
// long as it takes to make a thread. Who submits hands the job to the thread that became idle last,
// so the others come of age. A thread is idle again before anybody is told of what it has done: who
// comes back with the next job finds it, and so does who counts the idle ones.
#include "offload_threads.hpp"

#include <pthread.h>
#include <signal.h>

#include <motet/clock.hpp>
#include <motet/detail/jitter.hpp>
#include <motet/detail/process.hpp>
#include <motet/detail/thread_gate.hpp>
#include <new>

#include "faults.hpp"

namespace motet::inline MOTET_ABI::detail::offload_threads {

namespace {

struct idle_tag;

/// In the frame of a thread that has nothing to do.
struct idle_thread : tagged_link<idle_tag> {
  blocking_call* given = nullptr;
  thread_gate gate;
};

/// Its threads outlive statics: it has no destructor.
struct thread_set {
  std::mutex lock;
  std::size_t threads = 0;
  std::size_t idle_count = 0;
  list<idle_thread, idle_tag> idle;  // the one that has become so last is the first
  list<blocking_call, blocking_calls_tag> line;

  static thread_set& get() {
    static constinit thread_set one;
    return one;
  }
};

constexpr char name[] = "motet offload";

/// The signals that other threads or processes send are not for this one; what a thread does itself
/// and must not is, so that the program's handlers see it.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t others;
    sigfillset(&others);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&others, own);
    }
    ::pthread_sigmask(SIG_BLOCK, &others, &before_);
  }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// The lock is held: the name counts as soon as the thread is not counted as idle any more.
void leave(thread_set& all) noexcept {
  --all.idle_count;
  --all.threads;
  ::pthread_setname_np(::pthread_self(), name_of_ended);
}

/// Waits until something is handed to it, once the lock has been released and `done` told of.
/// Returns: null if nothing came for so long that the thread has left the set.
blocking_call* stay_idle(thread_set& all, std::unique_lock<std::mutex>& held,
                         blocking_call* done) noexcept {
  idle_thread self;
  all.idle.push_front(self);
  ++all.idle_count;
  held.unlock();
  jitter();
  if (done != nullptr) done->tell();
  self.gate.wait_until(clock::now() + idle_time.load());
  jitter();
  held.lock();
  if (self.linked()) {
    self.unlink();
    leave(all);
    return nullptr;
  }
  held.unlock();
  self.gate.wait();  // who has handed it over is just opening
  return self.given;
}

/// A job that has forked comes back in the child as well, where this thread is alone and in no set.
void serve(blocking_call* work) noexcept {
  thread_set& all = thread_set::get();
  const std::uint32_t began_in = this_process();
  while (work != nullptr) {
    blocking_call* done = work->run() ? work : nullptr;
    jitter();
    if (this_process() != began_in) return;
    std::unique_lock held(all.lock);
    work = all.line.pop_front();
    if (work == nullptr) {
      work = stay_idle(all, held, done);
    } else {
      held.unlock();
      if (done != nullptr) done->tell();
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
  const signals_blocked masked;
  pthread_t made{};
  const int error = ::pthread_create(&made, nullptr, &thread_main, &first);
  if (error == 0) ::pthread_detach(made);
  return error;
}

}  // namespace

int submit(blocking_call& work) noexcept {
  thread_set& all = thread_set::get();
  jitter();
  std::unique_lock held(all.lock);
  if (idle_thread* idle = all.idle.pop_front()) {
    --all.idle_count;
    idle->given = &work;
    held.unlock();
    jitter();
    idle->gate.open();
    return 0;
  }
  if (all.threads < most.load()) {
    const int error = begin_thread(work);
    if (error == 0) ++all.threads;
    if (error == 0 || all.threads == 0) return error;
  }
  all.line.push_back(work);
  return 0;
}

bool withdraw(blocking_call& work) noexcept {
  jitter();
  const std::lock_guard held(thread_set::get().lock);
  if (!list<blocking_call, blocking_calls_tag>::contains(work)) return false;
  list<blocking_call, blocking_calls_tag>::remove(work);
  return true;
}

standstill::standstill() noexcept : held_(thread_set::get().lock) {}

std::size_t standstill::idle() const noexcept {
  return thread_set::get().idle_count;
}

void lock() noexcept {
  thread_set::get().lock.lock();
}

void unlock() noexcept {
  thread_set::get().lock.unlock();
}

void abandon() noexcept {
  thread_set& all = thread_set::get();
  all.threads = all.idle_count = 0;
  all.idle.abandon();
  all.line.abandon();
  all.lock.unlock();
}

}  // namespace motet::inline MOTET_ABI::detail::offload_threads
