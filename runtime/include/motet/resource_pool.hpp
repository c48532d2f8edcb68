// SPDX-License-Identifier: MIT
// A limited number of things that are dear to make, each lent to one user at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <motet/semaphore.hpp>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet::inline MOTET_ABI {

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
  /// Throws: std::invalid_argument if `limit` is 0 or there is no `make`; std::bad_alloc.
  basic_resource_pool(std::size_t limit, std::function<T()> make,
                      std::function<bool(T&)> healthy = {})
      : make_(std::move(make)),
        healthy_(std::move(healthy)),
        slots_(static_cast<std::ptrdiff_t>(limit)) {
    if (limit == 0 || !make_) refuse_empty_pool();
    idle_.reserve(limit);
  }
  basic_resource_pool(const basic_resource_pool&) = delete;
  basic_resource_pool& operator=(const basic_resource_pool&) = delete;

  /// Waits until fewer than the limit are lent, and lends the one that was given back last, or a
  /// new one. Whoever has waited longest is served first. The pool must outlive the call, and
  /// the lease; one of motet::local is given back on its own thread, or ends the process.
  /// Switchpoint.
  /// Throws: what is pending for this fiber; what `make` and `healthy` throw, and then nothing is
  ///         lent.
  lease acquire() {
    slots_.acquire();
    taken_slot slot{this};
    while (std::optional<T> thing = take_idle()) {
      if (!healthy_ || healthy_(*thing)) return lease(slot.keep(), std::move(*thing));
    }
    T made = make_();
    return lease(slot.keep(), std::move(made));
  }

 private:
  /// Given back unless it is kept.
  struct taken_slot {
    basic_resource_pool* from;
    ~taken_slot() {
      if (from != nullptr) from->slots_.release();
    }
    basic_resource_pool& keep() noexcept { return *std::exchange(from, nullptr); }
  };

  std::optional<T> take_idle() {
    const std::lock_guard in(sharing_);
    if (idle_.empty()) return std::nullopt;
    std::optional<T> last(std::move(idle_.back()));
    idle_.pop_back();
    return last;
  }

  void give_back(T&& thing) noexcept {
    {
      const std::lock_guard in(sharing_);
      idle_.push_back(std::move(thing));  // within what is reserved
    }
    slots_.release();
  }

  const std::function<T()> make_;
  const std::function<bool(T&)> healthy_;
  Sharing sharing_;
  std::vector<T> idle_;
  basic_semaphore<Sharing> slots_;
};

/// One thing, given back at the end.
template <typename T, typename Sharing>
class [[nodiscard]] basic_resource_pool<T, Sharing>::lease {
 public:
  lease(lease&& from) noexcept : pool_(std::exchange(from.pool_, nullptr)) {
    thing_ = std::exchange(from.thing_, std::nullopt);
  }
  lease& operator=(lease&&) = delete;
  /// Not a switchpoint.
  ~lease() {
    if (thing_.has_value()) pool_->give_back(std::move(*thing_));
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
    const taken_slot free_at_end{pool_};
    thing_.reset();
  }

 private:
  friend class basic_resource_pool;
  lease(basic_resource_pool& from, T&& thing) noexcept : pool_(&from), thing_(std::move(thing)) {}

  basic_resource_pool* pool_;
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

}  // namespace motet::inline MOTET_ABI
