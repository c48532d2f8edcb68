// SPDX-License-Identifier: MIT
// See core/thread_registry.hpp.
#include "core/thread_registry.hpp"

#include <unistd.h>

#include <mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail {

constinit std::atomic<thread_entry*> motet_thread_registry{nullptr};

namespace {

/// What threads that have ended have counted, and the lock under which threads begin and end.
constinit std::mutex beginning;
constinit thread_counters of_ended;

/// The lock is held.
void call_for_each(const std::function<void(thread_entry&)>& f) {
  for (thread_entry* each = motet_thread_registry.load(); each != nullptr; each = each->next) {
    if (each->runtime.load() != nullptr) f(*each);
  }
}

thread_entry* take_free_place(pid_t thread) noexcept {
  for (thread_entry* each = motet_thread_registry.load(); each != nullptr; each = each->next) {
    pid_t nobody = 0;
    if (each->thread.compare_exchange_strong(nobody, thread)) return each;
  }
  return nullptr;
}

thread_entry* add_place(pid_t thread) {
  auto* added = new thread_entry;
  added->thread = thread;
  added->next = motet_thread_registry.load();
  while (!motet_thread_registry.compare_exchange_weak(added->next, added)) {
  }
  return added;
}

}  // namespace

registered_thread::registered_thread(thread_state& runtime) : place_(take_free_place(::gettid())) {
  if (place_ == nullptr) place_ = add_place(::gettid());
  enter(runtime);
}

void registered_thread::enter(thread_state& runtime) noexcept {
  const std::lock_guard guard(beginning);
  place_->dump_asked = false;
  place_->watched = false;
  place_->runtime = &runtime;
  place_->thread = ::gettid();
}

registered_thread::~registered_thread() {
  const std::lock_guard guard(beginning);
  thread_counters& own = place_->counters;
  own.forget_present();
  of_ended.add(own);
  own.clear();
  place_->runtime = nullptr;
  place_->thread = 0;
}

void read_counters(thread_counters& sum, const std::function<void(thread_entry&)>& f) {
  const std::lock_guard guard(beginning);
  sum.add(of_ended);
  call_for_each(f);
}

void for_each_runtime(const std::function<void(thread_entry&)>& f) {
  const std::lock_guard guard(beginning);
  call_for_each(f);
}

void registered_thread::abandon_all() noexcept {
  of_ended.clear();
  for (thread_entry* each = motet_thread_registry.load(); each != nullptr; each = each->next) {
    each->counters.clear();
    each->watched = false;
    each->runtime = nullptr;
    each->thread = 0;
  }
}

void registered_thread::lock_all() noexcept {
  beginning.lock();
}

void registered_thread::unlock_all() noexcept {
  beginning.unlock();
}

}}}  // namespace motet::MOTET_ABI::detail
