// SPDX-License-Identifier: MIT
// The events that a recorder notes, and the causes of wake-ups.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace trace {

/// The kind of a record. In most, the second word holds a detail of 24 bits and the number of a
/// fiber within its thread. A text is given by its offset in the table.
enum class kind : std::uint8_t {
  none,
  // The fiber that runs has left the thread to the one of the number; 0: to none yet.
  park,    // it waits; detail: a text, the reason
  snooze,  // it stands in line again
  end,     // it has ended; detail: its outcome
  // After a switch to 0, no fiber runs until `run`.
  run,      // the fiber of the number runs
  subject,  // of the wait in the record before: the second word is a descriptor
  object,   // the same: the address of what is waited for
  lock,     // the same, for a lock, which has one holder
  spin,     // the fiber that runs has spun this one; detail: a text, where
  wake,     // it is runnable; detail: the `cause`, and how late a timer was
  site,     // where the fiber was spun; detail: a text
  name,     // its name; detail: a text
  cancel,   // it is interrupted; detail: the `interrupt`
  post,     // the one that runs has woken a fiber of another thread, the second word is its id
  arrive,   // the fiber that runs is the body of another thread's, whose id is the second word
  leave,    // it no longer is
  sleep,    // the thread sleeps
  awake,    // the thread no longer sleeps
  poll,     // it has looked at its backend; detail: how many fibers are runnable; the number is 0,
            // or 1 if the running fiber continues
};

/// Why a fiber is runnable.
enum class cause : std::uint8_t { fiber, operation, timer, mail };

}}}}  // namespace motet::MOTET_ABI::detail::trace
