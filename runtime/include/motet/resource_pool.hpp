// SPDX-License-Identifier: MIT
// A limited number of things that are dear to make, each lent to one user at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <motet/detail/waiting/co_owned.hpp>
#include <motet/semaphore.hpp>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

[[noreturn]] void refuse_empty_pool();
[[noreturn]] void refuse_to_use_returned();

template <typename T, typename Sharing>
class basic_resource_pool {
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "what a pool lends is moved, and moving it must not throw");

 public:
  class lease;

  /// Lends at most `limit` things at a time, which `make()` makes when none is idle; it may switch.
  /// Before an idle one is lent, `healthy(thing)` is asked, if there is one: if it says no, or
  /// throws, the thing is destroyed.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if `limit` is 0 or no memory could hold as many, or there is no
  ///         `make`; std::bad_alloc.
  basic_resource_pool(std::size_t limit, std::function<T()> make,
                      std::function<bool(T&)> healthy = {})
      : state_(new state(limit, std::move(make), std::move(healthy))) {}
  basic_resource_pool(const basic_resource_pool&) = delete;
  basic_resource_pool& operator=(const basic_resource_pool&) = delete;
  /// Destroys what is idle; whoever still waits gets a std::logic_error. What is lent may be used
  /// on, and is destroyed with its lease.
  /// Not a switchpoint, unless a destructor is one.
  ~basic_resource_pool() { state_->end(); }

  /// Waits until fewer than the limit are lent, and lends the one that was given back last, or a
  /// new one. Whoever has waited longest is served first. A lease of motet::local is given back on
  /// its own thread, or ends the process.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; what `make` and `healthy` throw, and then nothing is
  ///         lent; std::logic_error if the pool is destroyed meanwhile.
  lease acquire() {
    taken_slot slot(*state_);
    while (std::optional<T> thing = slot->take_idle()) {
      if (!slot->healthy || slot->healthy(*thing)) return lease(std::move(slot), std::move(*thing));
    }
    T made = slot->make();
    return lease(std::move(slot), std::move(made));
  }

 private:
  struct state : co_owned<Sharing> {
    state(std::size_t limit, std::function<T()> how, std::function<bool(T&)> check)
        : make(std::move(how)),
          healthy(std::move(check)),
          slots(limit <= idle.max_size() ? static_cast<std::ptrdiff_t>(limit) : 0) {
      if (limit == 0 || limit > idle.max_size() || !make) refuse_empty_pool();
      idle.reserve(limit);
    }

    /// Throws: std::logic_error if the pool is gone.
    std::optional<T> take_idle() {
      const std::lock_guard in(this->sharing);
      if (this->ended) throw_destroyed();
      if (idle.empty()) return std::nullopt;
      std::optional<T> last(std::move(idle.back()));
      idle.pop_back();
      return last;
    }

    /// Leaves it to the caller if the pool is gone, and has no use for it.
    void give_back(T& thing) {
      const std::lock_guard in(this->sharing);
      if (!this->ended) idle.push_back(std::move(thing));  // within what is reserved
    }

    void end() noexcept {
      if (co_owned<Sharing>::end()) slots.release(plenty);  // those who waited find that it is over
      const std::vector<T> left(std::move(idle));
    }

    static constexpr std::ptrdiff_t plenty = std::numeric_limits<std::ptrdiff_t>::max() / 2;

    const std::function<T()> make;
    const std::function<bool(T&)> healthy;
    std::vector<T> idle;
    basic_semaphore<Sharing> slots;
  };

  /// Given back at the end.
  class taken_slot {
   public:
    explicit taken_slot(state& from) : of_(from) { from.slots.acquire(); }
    taken_slot(taken_slot&&) noexcept = default;
    taken_slot& operator=(taken_slot&&) = delete;
    ~taken_slot() {
      if (of_) of_->slots.release();
    }
    state* operator->() const noexcept { return &*of_; }

   private:
    co_owner<state> of_;
  };

  const co_owner<state> state_;
};

/// One thing, given back at the end.
template <typename T, typename Sharing>
class [[nodiscard]] basic_resource_pool<T, Sharing>::lease {
 public:
  lease(lease&& from) noexcept
      : slot_(std::move(from.slot_)), thing_(std::exchange(from.thing_, std::nullopt)) {
    from.slot_.reset();
  }
  lease& operator=(lease&&) = delete;
  /// Not a switchpoint, unless the pool is gone and the thing's destructor is one.
  ~lease() {
    if (thing_.has_value()) (*slot_)->give_back(*thing_);
  }

  /// Not a switchpoint.
  /// Throws: std::logic_error after discard().
  T& operator*() const {
    if (!thing_.has_value()) refuse_to_use_returned();
    return *thing_;
  }
  /// Not a switchpoint.
  /// Throws: std::logic_error after discard().
  T* operator->() const { return &**this; }

  /// Destroys the thing, which is of no use any more, and lets the pool make another.
  /// Not a switchpoint, unless the destructor is one.
  /// Throws: std::logic_error if that was done before.
  void discard() {
    if (!thing_.has_value()) refuse_to_use_returned();
    thing_.reset();
    slot_.reset();
  }

 private:
  friend class basic_resource_pool;
  lease(taken_slot&& slot, T&& thing) noexcept : slot_(std::move(slot)), thing_(std::move(thing)) {}

  std::optional<taken_slot> slot_;
  mutable std::optional<T> thing_;
};

}  // namespace detail

/// Lends to fibers and threads.
template <typename T>
using resource_pool = detail::basic_resource_pool<T, detail::any_thread>;

namespace local {
/// Lends to the fibers of one thread.
template <typename T>
using resource_pool = detail::basic_resource_pool<T, detail::one_thread>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
