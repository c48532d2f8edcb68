// SPDX-License-Identifier: MIT
// The operations of a thread's fibers, from submission to end, and the descriptors that are being
// closed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/list.hpp>
#include <motet/runtime/backend.hpp>

#include "core/counting/thread_counters.hpp"
#include "core/in_flight.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

class operations {
 public:
  explicit operations(thread_state& thread) noexcept;
  operations(const operations&) = delete;
  operations& operator=(const operations&) = delete;

  /// Hands `op` to the kernel and waits until it is over; an interruption ends it early.
  /// Returns: op.result; -ECANCELED only if it was interrupted, or -EBADF if its descriptor was
  ///          closed, before anything happened.
  std::int32_t perform(operation& op, const char* description) noexcept;
  /// The same, but waits no longer than until `due`.
  /// Returns: as perform(); -ETIME if `due` has passed before anything happened.
  std::int32_t perform_until(operation& op, const char* description,
                             clock::time_point due) noexcept;
  /// Submits an operation of the running fiber to the backend, and does not wait.
  /// Returns: false if the operation completed immediately.
  bool begin(pending_operation& request) noexcept;
  /// Has the kernel end an operation that is not done, and waits until it has.
  void cancel_and_wait(pending_operation& request) noexcept;
  /// The kernel has ended it.
  void complete(operation& op) noexcept;

  bool being_closed(int fd) noexcept;
  /// From now on, until `use` is unlinked, it is told when a fiber closes its descriptor.
  void note_use(descriptor_use& use) noexcept { uses_of(use.fd).push_back(use); }
  /// Whether a plain thread reads or writes at the descriptor's position, which is under a lock
  /// then.
  bool any_on_thread(int fd) noexcept;
  /// Ends the operations on `fd`, and lets none begin, until all are over: the caller then closes
  /// it at once.
  /// Returns: false, without effect, if another fiber is about to close it.
  bool end_all_on(int fd) noexcept;

  /// Adds those that have not ended.
  void count_in_flight(thread_counters& counters) noexcept;
  /// Whether the backend may hold operations that the kernel has not seen.
  bool submitted() const noexcept { return has_submitted_; }
  void polled() noexcept { has_submitted_ = false; }
  /// In a forked child: forgets the parent's operations.
  void abandon() noexcept {
    table_.abandon();
    closing_.abandon();
    for (use_list& list : uses_) list.abandon();
  }

 private:
  using use_list = list<descriptor_use, descriptor_use_tag>;

  use_list& uses_of(int fd) noexcept { return uses_[static_cast<std::size_t>(fd) % uses_.size()]; }
  bool hand_over(pending_operation& request) noexcept;
  static pending_operation* ended_with(const descriptor_use& use) noexcept;
  pending_operation* plain_call_into(int fd) noexcept;
  void end_early(pending_operation& request) noexcept;
  void end_use(descriptor_use& use) noexcept;
  void await_for_close(pending_operation& request, int fd) noexcept;
  [[gnu::noinline]] std::int32_t refuse_closing() noexcept;
  [[gnu::noinline]] std::int32_t perform_on_thread(pending_operation& request) noexcept;

  thread_state& thread_;
  bool has_submitted_ = false;    // since the last poll
  const bool memory_is_checked_;  // by Memcheck, which does not see what a ring writes
  std::size_t on_threads_ = 0;    // how many a plain thread performs
  list<closing, closing_tag> closing_;
  std::array<use_list, 64> uses_;  // found by the descriptor, as in the table
  in_flight table_;
};

}}}  // namespace motet::MOTET_ABI::detail
