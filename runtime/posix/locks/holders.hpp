// SPDX-License-Identifier: MIT
// Which fibers of a thread hold which locks of the C library, and which wait for one of those: the
// library itself knows threads only. Of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/detail/base/list.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/wait_record.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A lock that fibers of the thread hold, found by its address.
struct held_lock {
  const void* address = nullptr;
  const control_block* fiber = nullptr;  // the last one that has locked it
  std::uint64_t id = 0;                  // of that fiber
  const void* site = nullptr;            // where it did
  unsigned depth = 0;

  bool is_of(const control_block& other) const noexcept {
    return fiber == &other && id == other.id;
  }
};

struct lock_waiters_tag;

/// In the frame of a call.
struct lock_waiter : tagged_link<lock_waiters_tag> {
  explicit lock_waiter(const char* call, const void* lock) noexcept;
  const void* address;
  wait_record wait;
};

class lock_holders {
 public:
  lock_holders() noexcept { grow(); }
  lock_holders(const lock_holders&) = delete;
  lock_holders& operator=(const lock_holders&) = delete;
  ~lock_holders();

  /// Returns: null at the end of the thread, and if there is no memory for its table: then its
  ///          locks are the library's.
  static lock_holders* of_thread() noexcept {
    return present_ != nullptr ? present_ : make_present();
  }

  /// Returns: the entry of the lock; without an address if no fiber holds it. Valid until another
  ///          fiber runs, or a lock is noted.
  held_lock& entry_of(const void* address) noexcept { return entries_[place_of(address)]; }
  /// Notes that the fiber has locked it, once more perhaps.
  void note(held_lock& entry, const void* address, const control_block& fiber,
            const void* site) noexcept;
  /// Notes that it has been unlocked once, and wakes the fibers that wait for that.
  void remove(held_lock& entry, thread_state& home) noexcept;
  /// Waits until a fiber unlocks it, until `due`, or a while. Nothing interrupts it.
  void await(const void* address, const char* call, clock::time_point due,
             thread_state& home) noexcept;
  /// Whether the holders, each of which waits for the next one's lock, lead to the fiber.
  bool leads_to(const control_block& fiber, const held_lock& first) noexcept;

 private:
  static constexpr std::size_t first_capacity = 1'024;

  [[gnu::noinline]] static lock_holders* make_present() noexcept;
  [[gnu::tls_model("initial-exec")]] static thread_local constinit lock_holders* present_;

  bool grow() noexcept;
  /// Returns: the place of the lock, or the free one where it would be.
  std::size_t place_of(const void* address) const noexcept {
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
    const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(address) * factor;
    std::size_t place = (hash >> 32) & (capacity_ - 1);
    while (entries_[place].address != nullptr && entries_[place].address != address)
      place = (place + 1) & (capacity_ - 1);
    return place;
  }
  void erase(std::size_t place) noexcept;
  void wake(const void* address, thread_state& home) noexcept;

  held_lock* entries_ = nullptr;
  std::size_t capacity_ = 0;  // a power of two
  std::size_t count_ = 0;
  list<lock_waiter, lock_waiters_tag> waiters_;
};

/// Gives notice that a call breaks a rule, with the call's place and that of the lock's holder.
void report_lock(thread_state& home, const char* rule, const held_lock& entry, const char* call,
                 const void* site) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
