// SPDX-License-Identifier: MIT
// A pool of resources that are expensive to make; each is lent to one user at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <motet/detail/sync/shared_lifetime.hpp>
#include <motet/sync/semaphore.hpp>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// A resource_pool's figures, for monitoring.
struct resource_pool_stats {
  std::size_t limit = 0;    // of resources that are lent at a time
  std::size_t lent = 0;     // including those being created or checked
  std::size_t idle = 0;     // created and not lent
  std::size_t waiting = 0;  // fibers and threads
};

namespace detail {

[[noreturn]] void refuse_empty_pool();
[[noreturn]] void refuse_to_use_returned();

template <typename T, typename Sharing>
class basic_resource_pool {
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "what a pool lends is moved, and moving it must not throw");

 public:
  class lease;

  /// Lends at most `limit` resources at a time. `make()`, which may switch, creates one if none is
  /// idle. `healthy(resource)`, if given, is called before an idle resource is lent: if it returns
  /// false or throws, the resource is destroyed.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if `limit` is 0 or larger than memory could hold, or `make` is
  ///         empty; std::bad_alloc.
  basic_resource_pool(std::size_t limit, std::function<T()> make,
                      std::function<bool(T&)> healthy = {})
      : state_(new state(limit, std::move(make), std::move(healthy))) {}
  basic_resource_pool(const basic_resource_pool&) = delete;
  basic_resource_pool& operator=(const basic_resource_pool&) = delete;
  /// Destroys the idle resources; waits that are still open throw std::logic_error. A lent resource
  /// may still be used, and is destroyed with its lease.
  /// Not a switchpoint, unless a destructor is one.
  ~basic_resource_pool() { state_->end(); }

  /// Waits until fewer resources than the limit are lent, and lends the one that was returned most
  /// recently, or a new one. Callers are served in order of arrival. A lease from a pool of
  /// motet::local must be returned on the pool's thread; anywhere else it ends the process.
  /// Switchpoint.
  /// Throws: a pending interruption; what `make` and `healthy` throw, and then nothing is lent;
  ///         std::logic_error if the pool is destroyed meanwhile.
  lease acquire() {
    acquired_slot slot(*state_);
    while (std::optional<T> thing = slot->take_idle()) {
      if (!slot->healthy || slot->healthy(*thing)) return lease(std::move(slot), std::move(*thing));
    }
    T resource = slot->make();
    return lease(std::move(slot), std::move(resource));
  }

  /// Returns: the pool's state; takes time linear in the number of waiters. Not a switchpoint.
  resource_pool_stats stats() { return state_->stats(); }

 private:
  struct state : shared_lifetime<Sharing> {
    state(std::size_t limit, std::function<T()> factory, std::function<bool(T&)> check)
        : make(std::move(factory)),
          healthy(std::move(check)),
          slots(limit <= idle.max_size() ? static_cast<std::ptrdiff_t>(limit) : 0) {
      if (limit == 0 || limit > idle.max_size() || !make) refuse_empty_pool();
      idle.reserve(limit);
    }

    /// Throws: std::logic_error if the pool is gone.
    std::optional<T> take_idle() {
      const std::lock_guard lock(this->sharing);
      if (this->ended) throw_destroyed();
      if (idle.empty()) return std::nullopt;
      std::optional<T> last(std::move(idle.back()));
      idle.pop_back();
      return last;
    }

    /// Takes `thing` back, unless the pool is gone: then the caller destroys it.
    void give_back(T& thing) {
      const std::lock_guard lock(this->sharing);
      if (!this->ended) idle.push_back(std::move(thing));  // within the reserved capacity
    }

    resource_pool_stats stats() {
      const semaphore_stats permits = slots.stats();
      const std::lock_guard lock(this->sharing);
      const auto limit = static_cast<std::size_t>(permits.limit);
      return {limit, limit - static_cast<std::size_t>(permits.free), idle.size(), permits.waiting};
    }

    void end() noexcept {
      if (shared_lifetime<Sharing>::end()) slots.release(plenty);  // the waiters then see `ended`
      const std::vector<T> leftovers(std::move(idle));
    }

    static constexpr std::ptrdiff_t plenty = std::numeric_limits<std::ptrdiff_t>::max() / 2;

    const std::function<T()> make;
    const std::function<bool(T&)> healthy;
    std::vector<T> idle;
    basic_semaphore<Sharing> slots;
  };

  /// A permit to have one resource lent; its destructor gives the permit back.
  class acquired_slot {
   public:
    explicit acquired_slot(state& owner) : owner_(owner) { owner.slots.acquire(); }
    acquired_slot(acquired_slot&&) noexcept = default;
    acquired_slot& operator=(acquired_slot&&) = delete;
    ~acquired_slot() {
      if (owner_) owner_->slots.release();
    }
    state* operator->() const noexcept { return &*owner_; }

   private:
    shared_owner<state> owner_;
  };

  const shared_owner<state> state_;
};

/// One lent resource; its destructor gives the resource back.
template <typename T, typename Sharing>
class [[nodiscard]] basic_resource_pool<T, Sharing>::lease {
 public:
  lease(lease&& other) noexcept
      : slot_(std::move(other.slot_)), thing_(std::exchange(other.thing_, std::nullopt)) {
    other.slot_.reset();
  }
  lease& operator=(lease&&) = delete;
  /// Not a switchpoint, unless the pool is gone and the resource's destructor is one.
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

  /// Destroys the resource, because it is unusable, and lets the pool create another. Not a
  /// switchpoint, unless the resource's destructor is one.
  /// Throws: std::logic_error if the lease was discarded before.
  void discard() {
    if (!thing_.has_value()) refuse_to_use_returned();
    thing_.reset();
    slot_.reset();
  }

 private:
  friend class basic_resource_pool;
  lease(acquired_slot&& slot, T&& thing) noexcept
      : slot_(std::move(slot)), thing_(std::move(thing)) {}

  std::optional<acquired_slot> slot_;
  mutable std::optional<T> thing_;
};

}  // namespace detail

/// Lends to fibers and threads.
template <typename T>
using resource_pool = detail::basic_resource_pool<T, detail::shared_policy>;

namespace local {
/// Lends to the fibers of one thread.
template <typename T>
using resource_pool = detail::basic_resource_pool<T, detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
