// SPDX-License-Identifier: MIT
// See select.hpp. First each branch is asked whether it can proceed. Only if none can, the fiber
// joins the lists of all branches with one waiter; when a branch is chosen, the fiber leaves the
// lists of the others. If another thread makes a branch ready meanwhile, select() starts again.
#include <poll.h>

#include <cerrno>
#include <exception>
#include <motet/detail/sync/select_branch.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/mixed_bits.hpp"
#include "base/saturating_time.hpp"
#include "base/system_calls.hpp"
#include "core/event_recorder.hpp"
#include "core/thread_state.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

thread_state& full(thread_core& thread) noexcept {
  return static_cast<thread_state&>(thread);
}

/// All orders have equal chances.
void shuffle(std::span<select_branch*> branches, thread_core& thread) noexcept {
  std::uint64_t dice = ticks();
  for (std::size_t remaining = branches.size(); remaining > 1; --remaining) {
    dice = mixed_bits(dice);
    std::optional<std::size_t> place;
    if (thread.recorded()) place = full(thread).recording->choose_branch(remaining);
    std::swap(branches[remaining - 1], branches[place.value_or(dice % remaining)]);
  }
}

select_branch* first_to_proceed(std::span<select_branch*> branches, thread_core& thread) {
  for (const bool time : {false, true}) {
    for (select_branch* branch : branches) {
      if (branch->is_time() == time && branch->proceeds(thread)) return branch;
    }
  }
  return nullptr;
}

/// One attempt to wait: a waiter, and the branches whose lists it has entered.
class selection {
 public:
  selection(std::span<select_branch*> branches, const char* description,
            thread_core& thread) noexcept
      : branches_(branches), thread_(thread), waiter_(description, &thread, any_shared(branches)) {
    waiter_.in_many = true;
  }
  selection(const selection&) = delete;
  selection& operator=(const selection&) = delete;

  /// Returns: the branch that was taken; null if a branch was ready before the wait, and select()
  ///          must start again.
  select_branch* run() {
    std::exception_ptr error;
    bool waits = false;
    try {
      waits = enter_all();
    } catch (...) {
      error = std::current_exception();
    }
    // Another thread may have chosen the waiter by now: then the claim fails, and that branch is
    // taken.
    if (!waits && waiter_.wait.claim(wake_reason::interrupted)) {
      leave_all();
      if (error != nullptr) std::rethrow_exception(error);
      return nullptr;
    }
    const bool served = waiter_.park();
    leave_all();
    if (!served) throw_interruption();
    if (waiter_.destroyed) throw_destroyed();
    auto& winner = static_cast<select_branch&>(*waiter_.winner);
    winner.entered = false;
    winner.finish();
    return &winner;
  }

 private:
  static bool any_shared(std::span<select_branch*> branches) noexcept {
    for (const select_branch* branch : branches) {
      if (branch->shared) return true;
    }
    return false;
  }

  /// Returns: false if a branch is ready.
  bool enter_all() {
    for (select_branch* branch : branches_) {
      branch->owner = &waiter_;
      if (branch->enter(thread_)) return false;
      branch->entered = true;
    }
    return true;
  }

  void leave_all() noexcept {
    for (select_branch* branch : branches_) {
      if (branch == waiter_.winner || !std::exchange(branch->entered, false)) continue;
      branch->leave_list();
    }
  }

  std::span<select_branch*> branches_;
  thread_core& thread_;
  waiter waiter_;
};

}  // namespace

void refuse_to_select_nothing() {
  throw std::invalid_argument("select(): no branch is enabled");
}

select_branch& select_one(std::span<select_branch*> branches, bool as_they_are,
                          const char* description) {
  thread_state& thread = here();
  thread.deliver();
  if (branches.empty()) refuse_to_select_nothing();
  if (!as_they_are) shuffle(branches, thread);
  for (;;) {
    if (select_branch* ready = first_to_proceed(branches, thread)) return *ready;
    if (select_branch* winner = selection(branches, description, thread).run()) return *winner;
  }
}

select_branch& select_one_of(std::vector<select_branch*>& branches, bool as_they_are) {
  return select_one(std::span(branches), as_they_are, "select");
}

// A descriptor.

ready_case::ready_case(int fd, short events) noexcept
    : select_branch(false), poll_(op_, "select of fd") {
  op_.kind = verb::wait_fd;
  op_.fd = fd;
  op_.flags = events;
  poll_.wait.subject = fd;
  poll_.branch = this;
  poll_.won = win_at_end;
}

ready_case::ready_case(ready_case&& other) noexcept
    : ready_case(other.op_.fd, static_cast<short>(other.op_.flags)) {
  enabled = other.enabled;
}

void ready_case::win_at_end(pending_operation& operation, thread_core& home) noexcept {
  static_cast<poll_operation&>(operation).branch->win(home);
}

/// Source: poll(2).
bool ready_case::proceeds(thread_core&) {
  pollfd look{op_.fd, static_cast<short>(op_.flags), 0};
  if (op_.fd < 0 || (sys::poll(&look, 1, 0) > 0 && (look.revents & POLLNVAL) != 0)) {
    throw_errno(EBADF, "select", op_.fd);
  }
  return look.revents != 0;
}

bool ready_case::enter(thread_core& thread) {
  thread_state& full_thread = full(thread);
  if (full_thread.calls.being_closed(op_.fd)) throw_errno(EBADF, "select", op_.fd);
  op_.cancelling = false;  // left over from an earlier wait
  op_.stage = op_.spurious_wakes = 0;
  poll_.done = poll_.closed = false;
  poll_.closer = nullptr;
  poll_.wait.fiber = &thread.running();
  return !full_thread.calls.begin(poll_);
}

void ready_case::leave_list() noexcept {
  if (poll_.done) return;
  poll_.won = nullptr;
  full(present_core()).calls.cancel_and_wait(poll_);
  poll_.won = win_at_end;
}

void ready_case::finish() {
  if (poll_.closed) throw_errno(EBADF, "select", op_.fd);
  if (op_.result < 0) throw_errno(-op_.result, "select", op_.fd);
}

// A time.

time_case::time_case(clock::duration span) : select_branch(false), span_(span) {
  begin();
  alarm_.branch = this;
  alarm_.fire = [](timer& due) noexcept {
    time_case& self = *static_cast<alarm&>(due).branch;
    self.win(*due.fiber->home);
  };
}

time_case::time_case(time_case&& other) noexcept : time_case(other.span_) {
  enabled = other.enabled;
}

void time_case::begin() noexcept {
  alarm_.due = deadline_after(clock::now(), span_);
}

bool time_case::proceeds(thread_core&) {
  return alarm_.due <= clock::now();
}

bool time_case::enter(thread_core& thread) {
  alarm_.fiber = &thread.running();
  timers& time = full(thread).time;
  time.reserve(1);
  time.arm(alarm_);
  return false;
}

void time_case::leave_list() noexcept {
  full(present_core()).time.disarm(alarm_);
  finish();
}

void time_case::finish() {
  full(present_core()).time.unreserve();
}

}}}  // namespace motet::MOTET_ABI::detail
