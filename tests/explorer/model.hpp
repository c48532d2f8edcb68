// SPDX-License-Identifier: MIT
// What a model is written with, beside atomics.
#pragma once

#include <atomic>

#include "explorer/atomic.hpp"
#include "explorer/controller.hpp"
#include "explorer/memory.hpp"
#include "explorer/world.hpp"

namespace explorer {

inline world& here() {
  return *world::current();
}

inline void check(bool condition, const char* claim) {
  if (!condition) here().fail(claim);
}

inline void fence(std::memory_order order) {
  here().fence(order);
}

template <typename T>
void futex_wait(atomic<T>& word, T expected) {
  here().futex_wait({&word, sizeof(T)}, bits_of(expected));
}
template <typename T>
void futex_wake(atomic<T>& word) {
  here().futex_wake(&word);
}

/// A Lockable.
class mutex {
 public:
  void lock() { here().lock(this); }
  void unlock() { here().unlock(this); }
};

/// A variable that is not atomic: unordered accesses are a data race, which fails the execution.
template <typename T>
class plain {
 public:
  explicit plain(T value = T()) : value_(value) {}
  T get() const {
    here().check_read(history_);
    return value_;
  }
  void set(T value) {
    here().check_write(history_);
    value_ = value;
  }

 private:
  T value_;
  mutable plain_history history_;
};

}  // namespace explorer
