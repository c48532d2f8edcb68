// SPDX-License-Identifier: MIT
// An atomic whose accesses the current controller decides about. Source: [atomics.types.generic].
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

#include "explorer/controller.hpp"

namespace explorer {

/// As std::atomic, of at most eight bytes, as far as the library and the models use it.
template <typename T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(bits));

 public:
  constexpr atomic() noexcept : atomic(T()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as std::atomic
  constexpr atomic(T value) noexcept : value_(value) {
    if (!std::is_constant_evaluated() && current_controller != nullptr) {
      current_controller->begin_lifetime(own());
    }
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  constexpr ~atomic() {
    if (!std::is_constant_evaluated() && current_controller != nullptr) {
      current_controller->end_lifetime(own());
    }
  }

  T load(std::memory_order order = std::memory_order_seq_cst, site where = {}) const noexcept {
    if (current_controller == nullptr) return value_.load(order);
    return value_of<T>(current_controller->load(own(), order, where));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst,
             site where = {}) noexcept {
    if (current_controller == nullptr) return value_.store(value, order);
    current_controller->store(own(), bits_of(value), order, where);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst,
             site where = {}) noexcept {
    if (current_controller == nullptr) return value_.exchange(value, order);
    return update(change::exchange, value, order, where);
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order success,
                               std::memory_order failure, site where = {}) noexcept {
    if (current_controller == nullptr) {
      return value_.compare_exchange_strong(expected, value, success, failure);
    }
    bits found = bits_of(expected);
    const bool exchanged =
        current_controller->compare_exchange(own(), found, bits_of(value), success, failure, where);
    if (!exchanged) expected = value_of<T>(found);
    return exchanged;
  }
  bool compare_exchange_strong(T& expected, T value,
                               std::memory_order order = std::memory_order_seq_cst,
                               site where = {}) noexcept {
    return compare_exchange_strong(expected, value, order, failure_of(order), where);
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst,
              site where = {}) noexcept {
    if (current_controller == nullptr) return value_.fetch_add(value, order);
    return update(change::add, value, order, where);
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst,
              site where = {}) noexcept {
    if (current_controller == nullptr) return value_.fetch_sub(value, order);
    return update(change::subtract, value, order, where);
  }

  // NOLINTNEXTLINE(google-explicit-constructor): as std::atomic
  operator T() const noexcept { return load(); }
  T operator=(T value) noexcept {
    store(value);
    return value;
  }
  T operator++() noexcept { return static_cast<T>(fetch_add(1) + 1); }
  T operator--() noexcept { return static_cast<T>(fetch_sub(1) - 1); }
  T operator++(int) noexcept { return fetch_add(1); }
  T operator--(int) noexcept { return fetch_sub(1); }

 private:
  cell own() const noexcept { return {&value_, sizeof(T)}; }
  T update(change how, T operand, std::memory_order order, const site& where) noexcept {
    return value_of<T>(current_controller->update(own(), how, bits_of(operand), order, where));
  }
  static constexpr std::memory_order failure_of(std::memory_order order) noexcept {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    if (order == std::memory_order_release) return std::memory_order_relaxed;
    return order;
  }

  mutable std::atomic<T> value_;
};

}  // namespace explorer
