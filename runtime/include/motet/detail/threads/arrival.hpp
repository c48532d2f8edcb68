// SPDX-License-Identifier: MIT
// The function that an executor is given when a fiber wants to go on there.
#pragma once

#include <functional>
#include <memory>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

class inline_executor;
class strand;
class thread;
class thread_pool;

namespace detail {

class job_inbox;
struct migration_attempt;
struct journey;
struct residence;
struct executor_access;

/// The travelling fiber goes on in the first call of an arrival; the call returns when the fiber
/// leaves. When the last copy is destroyed without having been called, the fiber goes back, and
/// executor_stopped is thrown in it.
class arrival {
 public:
  explicit arrival(std::shared_ptr<migration_attempt> attempt) noexcept
      : attempt_(std::move(attempt)) {}
  void operator()() const;

 private:
  friend class arrival_job;
  std::shared_ptr<migration_attempt> attempt_;
};

struct executor_kind {
  void (*post)(void* target, std::function<void()>&& f);
  bool (*is_here)(const void* target);
  /// Waits for a slot, so that send() need not wait; null: send() never waits.
  /// Returns: false if the traveller already has a slot in this executor, and needs no other.
  bool (*reserve_slot)(void* target, const journey& traveller);
  /// Uses up the slot, even if it throws.
  void (*send)(void* target, const arrival& fiber);
};

/// Whether the calling fiber runs on that thread, pool, strand or executor.
bool runs_here(const thread& target);
bool runs_here(const thread_pool& target);
bool runs_here(const strand& target) noexcept;
bool runs_here(const inline_executor&) noexcept;

/// As executor_kind::reserve_slot.
/// Throws: executor_stopped; a pending interruption.
bool reserve_slot(const thread_pool& target, const journey& traveller);
bool reserve_slot(const strand& target, const journey& traveller);
/// Throws: executor_stopped, std::bad_alloc.
void give(const thread_pool& target, const arrival& fiber);
void give(const strand& target, const arrival& fiber);
void give(const thread& target, const arrival& fiber);

}  // namespace detail

}}  // namespace motet::MOTET_ABI
