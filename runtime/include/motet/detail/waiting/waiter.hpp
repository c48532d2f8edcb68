// SPDX-License-Identifier: MIT
// Waiting on a primitive. Who waits has a ticket, which ends once, and stands with it in a list of
// the primitive, or of several; whoever has something to hand over chooses the first that can still
// be chosen, under the primitive's lock, hands it over, and tells. A ticket that has been chosen
// stays where it is until it is told; one that has ended otherwise leaves the lists itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/ground/thread_gate.hpp>
#include <motet/detail/heart/switchpoint.hpp>
#include <motet/detail/waiting/sharing.hpp>
#include <motet/detail/words/list.hpp>
#include <motet/detail/words/post.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct waiter;
struct waiters_tag;

/// In the frame of who waits: a fiber, or a thread without fibers.
class ticket : public post {
 public:
  /// `thread` is null for a thread without fibers.
  ticket(const char* what, thread_core* thread, bool shared) noexcept
      : wait(what), fiber(thread == nullptr ? nullptr : &thread->running()), home_(thread) {
    wait.shared = shared;
  }

  /// Waits until it is told, or interrupted.
  /// Returns: whether it was told.
  [[gnu::always_inline]] bool stand_by() noexcept {
    if (home_ == nullptr) [[unlikely]]
      return block();
    if (told_) [[unlikely]] {
      home_->snooze();
      return true;
    }
    stands_by_ = true;
    return home_->park(wait) == wake_reason::handed;
  }

  /// Returns: whether it could still be chosen.
  bool open() const noexcept { return wait.ended() == wake_reason::none; }

  /// Returns: whether it could be chosen. The primitive's lock is held.
  [[gnu::always_inline]] bool choose(const thread_core* chooser) noexcept {
    // No other can be choosing it, if it stands in no other list; nor can it end otherwise now.
    if (chooser == home_ && chooser != nullptr && !in_many) [[likely]] {
      return wait.claim_unshared(wake_reason::handed);
    }
    return wait.claim(wake_reason::handed);
  }

  /// Ends the wait of one that was chosen, and with it perhaps its lifetime. No lock is held.
  [[gnu::always_inline]] void tell(thread_core* teller) noexcept {
    if (home_ == teller && teller != nullptr) [[likely]] {
      wake(*teller);
    } else {
      tell_elsewhere();
    }
  }

  wait_record wait;
  control_block* const fiber;  // for any thread, unlike wait; null: of one without fibers
  waiter* chosen = nullptr;    // its place in the list from which it was chosen
  bool in_many = false;        // lists at once
  bool destroyed = false;      // the primitive was, while this waited on it

 private:
  bool block() noexcept;
  void tell_elsewhere() noexcept;
  /// On its own thread. It may have been chosen while it was still on its way to wait.
  void wake(thread_core& home) noexcept {
    if (stands_by_) [[likely]] {
      home.make_runnable(*fiber);
    } else {
      told_ = true;
    }
  }

  thread_core* home_;
  bool stands_by_ = false;
  bool told_ = false;
  thread_gate gate_;
};

/// A ticket's place in one list.
struct waiter : tagged_link<waiters_tag> {
  waiter() = default;
  explicit waiter(ticket& its) noexcept : of(&its) {}

  ticket* of = nullptr;
  void* slot = nullptr;    // what it brings, or where what it gets should be put
  std::size_t number = 0;  // how much it wants, which of several it is
  bool refused = false;    // it was told, but gets nothing

  /// Ends the ticket's wait here, unless it has ended; by its home thread.
  bool win(thread_core& home) noexcept {
    if (!of->wait.claim(wake_reason::handed)) return false;
    of->chosen = this;
    home.make_runnable(*of->fiber);
    return true;
  }

  void enter() noexcept { place_.store(place::listed, std::memory_order_relaxed); }
  /// From here on it takes itself out of its list.
  /// Returns: false if it is in none any more; the list may be gone as well.
  bool leave() noexcept {
    place expected = place::listed;
    if (place_.compare_exchange_strong(expected, place::leaving)) return true;
    await_sent_away();
    return false;
  }
  /// Takes it, whose wait has ended otherwise, out of its list, whose lock is held.
  /// Returns: false if it is just leaving.
  bool send_away() noexcept {
    place expected = place::listed;
    if (!place_.compare_exchange_strong(expected, place::being_sent)) return false;
    unlink();
    place_.store(place::sent_away, std::memory_order_release);  // from here on it may be gone
    return true;
  }

 private:
  void await_sent_away() const noexcept;

  enum class place : std::uint8_t { listed, leaving, being_sent, sent_away };
  std::atomic<place> place_{place::sent_away};
};

/// A ticket that waits on one primitive.
struct lone_waiter : waiter {
  lone_waiter(const char* what, thread_core* thread, bool shared) noexcept
      : waiter(own), own(what, thread, shared) {}
  ticket own;
};

}}}  // namespace motet::MOTET_ABI::detail
