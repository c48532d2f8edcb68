// SPDX-License-Identifier: MIT
// Waiting on a primitive. Who waits has a ticket, which ends once, and stands with it in a list of
// the primitive, or of several; whoever has something to hand over chooses the first that can still
// be chosen, under the primitive's lock, hands it over, and tells. A ticket that has been chosen
// stays where it is until it is told; one that has ended otherwise leaves the lists itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/list.hpp>
#include <motet/detail/post.hpp>
#include <motet/detail/sharing.hpp>
#include <motet/detail/switchpoint.hpp>
#include <motet/detail/thread_gate.hpp>
#include <mutex>

namespace motet::inline MOTET_ABI::detail {

struct waiter;
struct waiters_tag;

/// How often this process has been forked since it began as another. Counted from the first
/// prepare_for_fork().
extern std::atomic<std::uint32_t> process_generation;
/// Called before anything waits that a child must forget.
void prepare_for_fork() noexcept;

/// In the frame of who waits: a fiber, or a thread without fibers.
class ticket : public post {
 public:
  /// `thread` is null for a thread without fibers.
  ticket(const char* what, thread_core* thread, bool shared) noexcept : wait(what), home_(thread) {
    wait.shared = shared;
    if (thread != nullptr) {
      wait.fiber = &thread->running();
    } else {
      prepare_for_fork();
    }
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
  waiter* chosen = nullptr;  // its place in the list from which it was chosen
  bool in_many = false;      // lists at once
  bool destroyed = false;    // the primitive was, while this waited on it

 private:
  bool block() noexcept;
  void tell_elsewhere() noexcept;
  /// On its own thread. It may have been chosen while it was still on its way to wait.
  void wake(thread_core& home) noexcept {
    if (stands_by_) [[likely]] {
      home.make_runnable(*wait.fiber);
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
    home.make_runnable(*of->wait.fiber);
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

[[noreturn]] void throw_destroyed();
/// After a wait that was not told.
[[noreturn]] void throw_interruption();

/// Who waits on a primitive, in the order in which they came. Its lock guards all but send_away().
class wait_list {
 public:
  void push_back(waiter& one) noexcept {
    forget_gone();
    one.enter();
    waiting_.push_back(one);
  }

  void push_front(waiter& one) noexcept {
    forget_gone();
    one.enter();
    waiting_.push_front(one);
  }

  /// Returns: the first that still waits, without choosing it; or null.
  waiter* front() noexcept {
    waiter* each = first();
    while (each != nullptr && !each->of->open()) each = waiting_.next(*each);
    return each;
  }

  /// The same, but sends away those in front of it that have ended.
  waiter* first_left() noexcept {
    waiter* each = first();
    while (each != nullptr && !each->of->open()) each = next_after_ended(*each);
    return each;
  }

  /// Returns: whether somebody else waits than this one.
  bool others_wait(const ticket& own) noexcept {
    for (waiter* each = first(); each != nullptr; each = waiting_.next(*each)) {
      if (each->of != &own && each->of->open()) return true;
    }
    return false;
  }

  /// Returns: the first that could be chosen, which is in the list no more; or null.
  [[gnu::always_inline]] waiter* choose(const thread_core* chooser) noexcept {
    waiter* oldest = first();
    if (oldest == nullptr || take(*oldest, chooser)) [[likely]]
      return oldest;
    return choose_behind(*oldest, chooser);
  }

  /// Returns: whether that one could be chosen.
  [[gnu::always_inline]] static bool take(waiter& one, const thread_core* chooser) noexcept {
    if (!one.of->choose(chooser)) return false;
    one.of->chosen = &one;
    one.unlink();
    return true;
  }

  /// The primitive ends: throws that into whoever waits.
  template <typename Sharing>
  void send_away(Sharing& sharing) noexcept;

 private:
  waiter* first() noexcept {
    if (waiting_.empty()) return nullptr;
    forget_gone();
    return waiting_.front();
  }

  /// In a forked child nobody waits who waited before, and frames of theirs may be gone.
  void forget_gone() noexcept {
    const std::uint32_t now = process_generation.load(std::memory_order_relaxed);
    if (filled_in_ == now) [[likely]]
      return;
    waiting_.abandon();
    filled_in_ = now;
  }

  [[gnu::noinline]] waiter* choose_behind(waiter& ended, const thread_core* chooser) noexcept {
    waiter* each = next_after_ended(ended);
    while (each != nullptr && !take(*each, chooser)) each = next_after_ended(*each);
    return each;
  }

  /// Returns: the one behind one that has ended, which goes unless it does so itself just now.
  waiter* next_after_ended(waiter& ended) noexcept {
    waiter* next = waiting_.next(ended);
    ended.send_away();
    return next;
  }

  list<waiter, waiters_tag> waiting_;
  std::uint32_t filled_in_ = 0;  // this generation of the process
};

extern template void wait_list::send_away(any_thread&) noexcept;
extern template void wait_list::send_away(one_thread&) noexcept;

/// Chosen ones that are still to be told, once the lock has been released.
class chosen_ones {
 public:
  void add(waiter& one) noexcept { waiting_.push_back(one); }
  /// Returns: how many there were.
  std::size_t tell(thread_core* teller) noexcept {
    std::size_t count = 0;
    while (waiter* each = waiting_.pop_front()) {
      each->of->tell(teller);
      ++count;
    }
    return count;
  }

 private:
  list<waiter, waiters_tag> waiting_;
};

/// `one` leaves a list that is still there; `then()` is called under its lock.
template <typename Sharing, typename Then>
void leave(Sharing& sharing, waiter& one, Then&& then) noexcept {
  if (!one.leave()) return;
  const std::lock_guard in(sharing);
  one.unlink();
  then();
}

/// Waits, after `one` has entered a list and the lock has been released.
/// Throws: what interrupts it; std::logic_error if the primitive is destroyed. Where it is
///         interrupted, `choose(freed)` is called first, under the lock: who was in the way of
///         those behind it is so no more.
template <typename Sharing, typename Choose>
[[gnu::always_inline]] inline void stand_by(Sharing& sharing, lone_waiter& one, Choose&& choose) {
  if (one.own.stand_by()) [[likely]] {
    if (one.own.destroyed) [[unlikely]]
      throw_destroyed();
    return;
  }
  chosen_ones freed;
  leave(sharing, one, [&] { choose(freed); });
  freed.tell(self_core());
  throw_interruption();
}

/// The same where nobody is in the way of others.
template <typename Sharing>
[[gnu::always_inline]] inline void stand_by(Sharing& sharing, lone_waiter& one) {
  stand_by(sharing, one, [](chosen_ones&) {});
}

}  // namespace motet::inline MOTET_ABI::detail
