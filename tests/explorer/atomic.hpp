// SPDX-License-Identifier: MIT
// What a model is written with: atomics, fences, mutexes and plain variables whose every access is
// a step of the explorer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "explorer/world.hpp"

namespace explorer {

inline world& here() {
  return *world::current();
}

inline void check(bool condition, const char* claim) {
  if (!condition) here().fail(claim);
}

/// As std::atomic, of at most eight bytes. A weak exchange never fails spuriously.
template <typename T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

 public:
  atomic() : atomic(T()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as std::atomic
  atomic(T value) : location_(here().history.new_location(bits(value))) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    world& all = here();
    all.before({action::load, location_, order == std::memory_order_seq_cst});
    const std::size_t newest = all.history.newest(location_);
    const std::size_t oldest =
        all.takes_newest() ? newest : all.history.oldest(all.thread_number(), location_, order);
    return read(newest - all.choose(newest - oldest + 1), order);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    world& all = here();
    all.before({action::store, location_, order == std::memory_order_seq_cst});
    all.history.store(all.thread_number(), location_, bits(value), order);
    note("store to atomic", value);
  }

  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    return update([&](T) { return value; }, order);
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) {
    return update([&](T old) { return static_cast<T>(old + value); }, order);
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) {
    return update([&](T old) { return static_cast<T>(old - value); }, order);
  }
  T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst) {
    return update([&](T old) { return static_cast<T>(old | value); }, order);
  }
  T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst) {
    return update([&](T old) { return static_cast<T>(old & value); }, order);
  }

  /// Succeeds only with the newest value; fails with any that a load may read.
  bool compare_exchange_strong(T& expected, T value, std::memory_order success,
                               std::memory_order failure) {
    world& all = here();
    all.before({action::update, location_, success == std::memory_order_seq_cst});
    const std::size_t newest = all.history.newest(location_);
    std::size_t oldest = newest;
    if (!all.takes_newest()) oldest = all.history.oldest(all.thread_number(), location_, failure);
    std::array<std::size_t, 64> options;
    std::size_t count = 0;
    for (std::size_t index = newest + 1; index-- > oldest && count < options.size();) {
      const bool equal = all.history.value(location_, index) == bits(expected);
      if (index == newest || !equal) options[count++] = index;
    }
    const std::size_t index = options[all.choose(count)];
    if (all.history.value(location_, index) != bits(expected)) {
      expected = read(index, failure);
      return false;
    }
    all.history.update(all.thread_number(), location_, bits(value), success);
    note("compare_exchange of atomic", value);
    return true;
  }
  bool compare_exchange_strong(T& expected, T value,
                               std::memory_order order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, value, order, failure_of(order));
  }
  template <typename... Orders>
  bool compare_exchange_weak(T& expected, T value, Orders... orders) {
    return compare_exchange_strong(expected, value, orders...);
  }

  std::size_t location() const { return location_; }
  /// The kernel's read.
  T read_newest() const {
    return read(here().history.newest(location_), std::memory_order_relaxed);
  }

 private:
  static std::uint64_t bits(T value) {
    std::uint64_t result = 0;
    std::memcpy(&result, &value, sizeof value);
    return result;
  }
  static T value_of(std::uint64_t bits) {
    T result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }
  static std::memory_order failure_of(std::memory_order order) {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    if (order == std::memory_order_release) return std::memory_order_relaxed;
    return order;
  }

  T read(std::size_t index, std::memory_order order) const {
    world& all = here();
    const T value = value_of(all.history.value(location_, index));
    all.history.load(all.thread_number(), location_, index, order);
    note(index == all.history.newest(location_) ? "load of atomic" : "stale load of atomic", value);
    return value;
  }
  template <typename Change>
  T update(Change change, std::memory_order order) {
    world& all = here();
    all.before({action::update, location_, order == std::memory_order_seq_cst});
    const T old = value_of(all.history.value(location_, all.history.newest(location_)));
    const T value = change(old);
    all.history.update(all.thread_number(), location_, bits(value), order);
    note("update of atomic", value);
    return old;
  }
  void note(const char* name, T value) const { here().note(name, location_, bits(value)); }

  const std::size_t location_;
};

inline void fence(std::memory_order order) {
  world& all = here();
  const bool sequential = order == std::memory_order_seq_cst;
  if (sequential) all.before({action::fence, 0, true});
  all.history.fence(all.thread_number(), order);
  all.note("fence", 0, 0);
}

/// FUTEX_WAIT: blocks until futex_wake(), unless the newest value of `word` is not `expected`.
template <typename T>
void futex_wait(atomic<T>& word, T expected) {
  world& all = here();
  all.before({action::wait, word.location(), false});
  if (word.read_newest() == expected) all.block(&word);
  all.note("end of a wait on atomic", word.location(), 0);
}
/// FUTEX_WAKE of one thread.
template <typename T>
void futex_wake(atomic<T>& word) {
  world& all = here();
  all.before({action::wake, word.location(), false});
  all.wake_one(&word);
  all.note("wake of atomic", word.location(), 0);
}

/// A Lockable.
class mutex {
 public:
  void lock() {
    world& all = here();
    all.before({action::lock, number_, false});
    while (held_) all.block(this);
    held_ = true;
    all.history.acquire(all.thread_number(), released_);
    all.note("lock of mutex", number_, 0);
  }
  void unlock() {
    world& all = here();
    all.before({action::unlock, number_, false});
    all.history.release(all.thread_number(), released_);
    held_ = false;
    all.wake(this);
    all.note("unlock of mutex", number_, 0);
  }

 private:
  const std::size_t number_ = here().new_mutex();
  bool held_ = false;
  knowledge released_;
};

/// A variable that is not atomic: unordered accesses are a data race, which fails the execution.
template <typename T>
class plain {
 public:
  explicit plain(T value = T()) : value_(value) {}
  T get() const {
    world& all = here();
    check(all.history.read(all.thread_number(), history_), "a data race: a read and a write");
    return value_;
  }
  void set(T value) {
    world& all = here();
    check(all.history.write(all.thread_number(), history_), "a data race: a write");
    value_ = value;
  }

 private:
  T value_;
  mutable plain_history history_;
};

}  // namespace explorer
