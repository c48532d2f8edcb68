// SPDX-License-Identifier: MIT
// What decides each access to an explorer::atomic. With -Dexplorer=true the library is built on
// these atomics; it includes this header and atomic.hpp, and nothing else of the explorer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace explorer {

/// The value of an atomic of at most eight bytes.
using bits = std::uint64_t;

template <typename T>
bits bits_of(T value) noexcept {
  bits result = 0;
  std::memcpy(&result, &value, sizeof value);
  return result;
}
template <typename T>
T value_of(bits from) noexcept {
  T result;
  std::memcpy(&result, &from, sizeof result);
  return result;
}

/// The memory of an atomic, which holds the newest value.
struct cell {
  void* address;
  std::size_t size;

  bits get() const noexcept {
    bits result = 0;
    std::memcpy(&result, address, size);
    return result;
  }
  void set(bits value) const noexcept { std::memcpy(address, &value, size); }
};

/// The function, and its place in the source, that accesses an atomic.
struct site {
  // NOLINTNEXTLINE(google-explicit-constructor): a default argument
  site(const char* name = __builtin_FUNCTION(), const char* path = __builtin_FILE(),
       unsigned number = __builtin_LINE()) noexcept
      : function(name), file(path), line(number) {}

  const char* function;
  const char* file;
  unsigned line;
};

enum class change : std::uint8_t { exchange, add, subtract };

class controller {
 public:
  virtual void begin_lifetime(const cell& target) = 0;
  virtual void end_lifetime(const cell& target) = 0;
  virtual bits load(const cell& source, std::memory_order order, const site& where) = 0;
  virtual void store(const cell& target, bits value, std::memory_order order,
                     const site& where) = 0;
  /// Returns: the value before the change.
  virtual bits update(const cell& target, change how, bits operand, std::memory_order order,
                      const site& where) = 0;
  virtual bool compare_exchange(const cell& target, bits& expected, bits value,
                                std::memory_order success, std::memory_order failure,
                                const site& where) = 0;
  /// The calling thread looks at an atomic in a loop.
  virtual void pause() = 0;
  /// Returns: what the processor's counter shows: the same in each execution with the same choices.
  virtual std::uint64_t ticks() = 0;
  /// Returns: a number below 8 that no other thread has.
  virtual std::size_t thread_number() const = 0;

 protected:
  ~controller() = default;
};

/// Null: atomics are what they are without the explorer.
inline constinit controller* current_controller = nullptr;

}  // namespace explorer
