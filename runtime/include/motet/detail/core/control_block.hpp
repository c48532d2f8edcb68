// SPDX-License-Identifier: MIT
// What is kept about every fiber, in four cache lines, of which a switch touches the first. Changed
// by its home thread alone; lives until the fiber is dead and the last handle to it is gone. What
// few fibers need is in its cold part.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/body.hpp>
#include <motet/detail/base/list.hpp>
#include <motet/detail/platform/context.hpp>
#include <motet/detail/platform/stack.hpp>
#include <motet/fibers/fiber_state.hpp>

namespace motet { inline namespace MOTET_ABI {

class cancel_reason;

namespace detail {

class mailbox;
class scope_entry;
struct cold_part;
struct control_block;
struct family;
struct thread_core;
struct wait_record;

struct fibers_tag;
struct children_tag;
struct awaiters_tag;

/// Who waits for a fiber's end. notify() is called once, on the home thread of the awaited fiber,
/// and may end the awaiter's lifetime; it returns false if the wait had ended before.
struct awaiter : tagged_link<awaiters_tag> {
  bool (*notify)(awaiter&) noexcept = nullptr;
};

/// Why a fiber should throw at its next switchpoint; several can be pending.
enum interrupt : std::uint8_t {
  interrupt_raised = 1,   // an exception in `raised`
  interrupt_cancel = 2,   // the fiber itself has been cancelled
  interrupt_failure = 4,  // a child has failed
  interrupt_scope = 8,    // a scope around the running code has ended
  interrupt_waits = 16,   // not an interruption: on a foreign executor, a wait throws
  interrupt_kernel = 32,  // a forked child has no backend yet
  interrupt_anew = 0,     // no new reason: one that a handler held back is due again
};

/// How a dead fiber ended.
enum class outcome : std::uint8_t { none, value, error, cancelled };

/// The first line.
struct switch_line {
  context resume_context;                    // first, so that the switch needs no second address
  union {                                    // while runnable:
    control_block* queued_behind = nullptr;  // the fiber that runs next
    std::size_t queued_at;                   // or its place among many
  };
  void* chain = nullptr;      // while the fiber is switched out, these two are its
  unsigned int uncaught = 0;  // exception_state, and the next one is its errno
  int saved_errno = 0;
  atomic<fiber_state> state{fiber_state::runnable};
  std::uint8_t interrupts = 0;
  bool transient = false;
  bool is_main : 1 = false;
  bool hosts : 1 = false;           // a traveller runs as this fiber
  bool owes_turn : 1 = false;       // it overtook others for its awaiter, which then may, too
  std::uint8_t spare_bits : 5 = 0;  // so that the whole byte is written
  std::uint16_t shields = 0;
  bool has_cold_part = false;
  bool named = false;
};

struct alignas(std::max_align_t) control_block : switch_line,
                                                 tagged_link<fibers_tag>,
                                                 tagged_link<children_tag> {
  /// `in_family` and `kind_of_body` may be null: nobody's child, a main fiber.
  control_block(thread_core& thread, mailbox& inbox, int referred_to, std::uint64_t number,
                clock::time_point time, family* in_family = nullptr,
                control_block* child_of = nullptr, const body_kind* kind_of_body = nullptr,
                call_site spun = {}) noexcept
      : home(&thread),
        mail(&inbox),
        belongs_to(in_family),
        parent(child_of),
        references(referred_to),
        id(number),
        site(spun),
        spun_at(time),
        kind(kind_of_body) {}

  // The fiber's wait, and what it is to throw.
  wait_record* wait = nullptr;
  std::exception_ptr raised;
  const cancel_reason* to_end_for = nullptr;  // in its cold part; null: nobody has asked
  scope_entry* scopes = nullptr;              // the innermost scope around the running code

  // Its thread and its family.
  thread_core* home;
  mailbox* mail;
  family* belongs_to;
  control_block* parent;  // referred to for as long as this block lives
  int references;         // of this thread; remote_requests has the other threads'
  atomic<bool> known_remotely{false};
  bool ending = false;  // the body has returned or thrown

  // The outcome; never changes once `state` is dead.
  outcome ended_by = outcome::none;
  result_state result = result_state::none;
  std::exception_ptr error;
  list<awaiter, awaiters_tag> awaiters;

  // Identity.
  std::uint64_t id;
  call_site site;
  clock::time_point spun_at;

  // Its body and its stack.
  const body_kind* kind;
  void* body = nullptr;
  stack runs_on;  // see has_stack()

  /// False until a fiber with a small body begins, and once another has begun on its stack.
  bool has_stack() const noexcept { return runs_on.bottom != nullptr; }
  bool dead() const noexcept { return state.load(std::memory_order_acquire) == fiber_state::dead; }
};

#if defined(__x86_64__) && !defined(MOTET_ASAN) && !defined(MOTET_TSAN)
static_assert(sizeof(switch_line) == 64 && sizeof(control_block) == 256);
#endif

}  // namespace detail

}}  // namespace motet::MOTET_ABI
