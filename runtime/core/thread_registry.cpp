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
  for (thread_entry* entry = motet_thread_registry.load(); entry != nullptr; entry = entry->next) {
    if (entry->runtime.load() != nullptr) f(*entry);
  }
}

thread_entry* claim_free_entry(pid_t thread) noexcept {
  for (thread_entry* entry = motet_thread_registry.load(); entry != nullptr; entry = entry->next) {
    pid_t no_owner = 0;
    if (entry->thread.compare_exchange_strong(no_owner, thread)) return entry;
  }
  return nullptr;
}

thread_entry* add_entry(pid_t thread) {
  auto* entry = new thread_entry;
  entry->thread = thread;
  entry->next = motet_thread_registry.load();
  while (!motet_thread_registry.compare_exchange_weak(entry->next, entry)) {
  }
  return entry;
}

}  // namespace

registered_thread::registered_thread(thread_state& runtime) : entry_(claim_free_entry(::gettid())) {
  if (entry_ == nullptr) entry_ = add_entry(::gettid());
  enter(runtime);
}

void registered_thread::enter(thread_state& runtime) noexcept {
  const std::lock_guard guard(beginning);
  entry_->dump_asked = false;
  entry_->monitored = false;
  entry_->runtime = &runtime;
  entry_->thread = ::gettid();
}

registered_thread::~registered_thread() {
  const std::lock_guard guard(beginning);
  thread_counters& counters = entry_->counters;
  counters.forget_present();
  of_ended.add(counters);
  counters.clear();
  entry_->runtime = nullptr;
  entry_->thread = 0;
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
  for (thread_entry* entry = motet_thread_registry.load(); entry != nullptr; entry = entry->next) {
    entry->counters.clear();
    entry->monitored = false;
    entry->runtime = nullptr;
    entry->thread = 0;
  }
}

void registered_thread::lock_all() noexcept {
  beginning.lock();
}

void registered_thread::unlock_all() noexcept {
  beginning.unlock();
}

}}}  // namespace motet::MOTET_ABI::detail
