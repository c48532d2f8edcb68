// SPDX-License-Identifier: MIT
// What the heart asks of the rooms above: how a fiber lives, and where it travels.
#pragma once

#include <exception>
#include <motet/detail/heart/cold_part.hpp>
#include <motet/detail/heart/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class blocking_call;
class remote_wait;
class thread_state;

// threads/offload.cpp

/// Waits for the end of a call that a plain thread makes, as remote_wait::await() does; gives
/// notice if no thread begins it for long.
bool await_thread(remote_wait& end, blocking_call& call) noexcept;

// life/fiber_end.cpp

/// The first function of a fiber, on its own stack: calls the body, then ends the fiber.
void fiber_main(void* block);

// process/fork.cpp

/// Makes the backend of a forked child, in which no switchpoint has done so yet.
/// Returns: null; or why there is none.
std::exception_ptr make_kernel_of_child(thread_state& child) noexcept;

// travel/

/// Whether its stack is on another thread, or about to be. At home.
bool is_away(const control_block& fiber) noexcept;

/// Brings it home, if it is away, and ends its children abroad; nothing interrupts that.
[[gnu::noinline]] void come_home(control_block& fiber) noexcept;

/// In the frame of what must end where it began: the body of a fiber.
class homecoming {
 public:
  explicit homecoming(control_block& fiber) noexcept : fiber_(fiber) {}
  homecoming(const homecoming&) = delete;
  homecoming& operator=(const homecoming&) = delete;
  ~homecoming() {
    if (fiber_.has_cold_part) [[unlikely]]
      come_home(fiber_);
  }

 private:
  control_block& fiber_;
};

/// Goes to where `owner`, one of the blocks it runs as, is at home.
void go_to(control_block& owner) noexcept;
/// Returns: for how many of its scopes a thread must have room for a timer.
std::size_t timers_of_scopes(const scope_entry* innermost) noexcept;
/// Returns: at home again, what a child abroad has failed with, if one has.
std::exception_ptr failure_while_away(control_block& fiber) noexcept;
/// Returns: what was raised in it while it was away, too late for a switchpoint there; or null.
std::exception_ptr raised_too_late(control_block& fiber) noexcept;
/// Requests to a fiber that is away are forwarded to the thread where it is.
void forward_stops(control_block& fiber) noexcept;
void forward_result(control_block& fiber, value_slot&& value) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
