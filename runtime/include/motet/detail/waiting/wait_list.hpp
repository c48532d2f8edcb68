// SPDX-License-Identifier: MIT
// Who waits on a primitive, and how the primitive serves them. See detail/waiting/waiter.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/ground/process.hpp>
#include <motet/detail/waiting/sharing.hpp>
#include <motet/detail/waiting/waiter.hpp>
#include <motet/detail/words/list.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail {

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

  /// `told`, which was chosen, gets nothing but may look: until it has arrived() nobody else is
  /// found here, so that none behind it is served first.
  void expect(waiter& told) noexcept {
    told.refused = true;
    filled_in_ |= expecting;
  }
  void arrived() noexcept { filled_in_ &= ~expecting; }

  /// Returns: whether somebody waits, or is expected.
  bool anybody() noexcept {
    forget_gone();
    return (filled_in_ & expecting) != 0 || front() != nullptr;
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
    return (filled_in_ & expecting) == 0 ? waiting_.front() : nullptr;
  }

  /// In a forked child nobody waits who waited before, and frames of theirs may be gone.
  void forget_gone() noexcept {
    if ((filled_in_ & ~expecting) == this_process()) [[likely]]
      return;
    waiting_.abandon();
    filled_in_ = this_process();
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
  static constexpr std::uint32_t expecting = std::uint32_t{1} << 31;
  std::uint32_t filled_in_ = 0;  // this process, and `expecting`
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

}}}  // namespace motet::MOTET_ABI::detail
