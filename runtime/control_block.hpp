// SPDX-License-Identifier: MIT
// All that is kept about a fiber. Changed by its home thread alone, but for `abroad`; lives until
// the fiber is dead and the last handle to it is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <motet/clock.hpp>
#include <motet/detail/body.hpp>
#include <motet/detail/family.hpp>
#include <motet/detail/list.hpp>
#include <motet/detail/scope.hpp>
#include <motet/detail/states.hpp>
#include <motet/detail/value_slot.hpp>
#include <string>

#include "context.hpp"
#include "exception_state.hpp"
#include "mailbox.hpp"
#include "stack.hpp"
#include "wait_record.hpp"

namespace motet::inline MOTET_ABI::detail {

struct queue_tag;
struct fibers_tag;
struct awaiters_tag;

/// Who waits for a fiber's end. tell() is called once, on the home thread of the awaited fiber, and
/// may end the awaiter's lifetime; it returns false if the wait had ended before.
struct awaiter : tagged_link<awaiters_tag> {
  bool (*tell)(awaiter&) noexcept = nullptr;
};

/// Why a fiber should throw at its next switchpoint; several can be pending.
enum interrupt : std::uint8_t {
  interrupt_raised = 1,   // an exception in `raised`
  interrupt_cancel = 2,   // the fiber itself has been cancelled
  interrupt_failure = 4,  // a child has failed
  interrupt_scope = 8,    // a deadline has passed
};

/// How a dead fiber ended.
enum class outcome : std::uint8_t { none, value, error, cancelled };

/// What foreign threads ask of a fiber, gathered until its home thread looks. Guarded by the
/// mailbox's lock.
struct foreign_requests : post {
  control_block* fiber = nullptr;
  bool queued = false;
  /// How many kinds of request there are, and for each its place among them; 0: not asked for.
  std::uint8_t asked = 0;
  std::uint8_t raise_at = 0;
  std::uint8_t cancel_at = 0;
  std::uint8_t token_at = 0;
  std::uint8_t resume_at = 0;
  bool resumer_broken = false;
  const char* cancel_reason = nullptr;
  std::uint64_t resume_number = 0;  // of the suspend_with() that `resumed` is for
  std::exception_ptr raised;
  value_slot token;
  value_slot result;  // of stop()
  value_slot resumed;
  int references = 0;

  /// Nobody will look at what has been asked for.
  void abandon() noexcept {
    queued = false;
    asked = raise_at = cancel_at = token_at = resume_at = 0;
    raised = nullptr;
    token.reset();
    result.reset();
    resumed.reset();
  }
};

/// The wait of suspend_with(); in the frame of the fiber.
struct resume_wait {
  wait_record wait{"suspend_with"};
  std::uint64_t number = 0;
  bool broken = false;
  value_slot value;
};

struct control_block : tagged_link<queue_tag>, tagged_link<fibers_tag>, tagged_link<children_tag> {
  // The switch.
  context where;
  exception_state exceptions;
  int saved_errno = 0;

  // What it does and what it should throw.
  std::atomic<fiber_state> state{fiber_state::runnable};
  std::uint8_t interrupts = 0;
  int shields = 0;
  wait_record* wait = nullptr;
  std::exception_ptr raised;
  const char* cancel_reason = nullptr;  // null: nobody has asked
  scope* scopes = nullptr;              // the innermost one it is in
  value_slot token;
  resume_wait* resuming = nullptr;
  std::uint64_t resume_numbers = 0;

  // Structure.
  family* belongs_to = nullptr;
  family own;
  control_block* parent = nullptr;        // referred to for as long as this block lives
  control_block* told_to = nullptr;       // the parent that may still be spared its failure
  control_block* next_failure = nullptr;  // there
  control_block* failures = nullptr;      // failed children that the fiber has not been told of
  bool transient = false;
  bool is_main = false;
  bool ending = false;  // the body has been left

  // The outcome; never changes once `state` is dead.
  outcome ended_by = outcome::none;
  bool result_stands = false;
  bool result_taken = false;
  std::exception_ptr error;
  void* result = nullptr;
  list<awaiter, awaiters_tag> awaiters;

  // Identity.
  std::uint64_t id = 0;
  std::string name;
  spin_site site;
  clock::time_point spun_at{};

  // What it runs and on what.
  const body_kind* kind = nullptr;
  void* body = nullptr;
  stack runs_on;
  thread_state* home = nullptr;
  mailbox* mail = nullptr;

  int references = 0;  // at home; those abroad are in `abroad`
  std::atomic<bool> went_abroad{false};
  foreign_requests abroad;

  alignas(std::max_align_t) std::byte small_result[32];

  tagged_link<queue_tag>& in_queue() noexcept { return *this; }
  bool queued() const noexcept { return tagged_link<queue_tag>::linked(); }
  bool dead() const noexcept { return state.load(std::memory_order_acquire) == fiber_state::dead; }
  /// Returns: its name, or its number if it has none.
  std::string label() const { return name.empty() ? std::to_string(id) : name; }
};

}  // namespace motet::inline MOTET_ABI::detail
