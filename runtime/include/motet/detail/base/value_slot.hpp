// SPDX-License-Identifier: MIT
// Room for one value of any movable type: in place up to 32 bytes, else in one allocation, which
// holding() makes before the value is given to a fiber.
#pragma once

#include <cstddef>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The token of a schedule() and a suspend() without a value.
struct nothing {};

class value_slot {
 public:
  value_slot() = default;
  value_slot(const value_slot&) = delete;
  value_slot& operator=(const value_slot&) = delete;
  value_slot(value_slot&& other) noexcept { adopt(other); }
  value_slot& operator=(value_slot&& other) noexcept {
    if (this != &other) {
      reset();
      adopt(other);
    }
    return *this;
  }
  ~value_slot() { reset(); }

  template <typename T>
  static value_slot holding(T value) {
    value_slot slot;
    if constexpr (in_place<T>) {
      ::new (static_cast<void*>(slot.storage_)) T(std::move(value));
    } else {
      ::new (static_cast<void*>(slot.storage_)) T*(new T(std::move(value)));
    }
    slot.kind_ = &kind_of<T>;
    return slot;
  }

  bool filled() const noexcept { return kind_ != nullptr; }
  /// Returns: whether there is nothing to destroy.
  bool trivial() const noexcept { return kind_ == nullptr || kind_->destroy == nullptr; }

  template <typename T>
  bool holds() const noexcept {
    return filled() && kind_->type == typeid(T);
  }

  /// Returns: the value, moved out; the slot is empty afterwards. holds<T>() must be true.
  template <typename T>
  T take() {
    const value_slot contents(std::move(*this));
    return std::move(*contents.template address<T>());
  }

  void reset() noexcept {
    const bool nothing_to_do = trivial();
    const kind* old_kind = kind_;
    kind_ = nullptr;
    if (!nothing_to_do) old_kind->destroy(storage_);
  }

 private:
  struct kind {
    const std::type_info& type;
    void (*move)(void* destination, void* source) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <typename T>
  static constexpr bool in_place = sizeof(T) <= 32 && alignof(T) <= alignof(std::max_align_t) &&
                                   std::is_nothrow_move_constructible_v<T>;

  template <typename T>
  T* address() const noexcept {
    auto* raw = const_cast<std::byte*>(storage_);
    if constexpr (in_place<T>) {
      return std::launder(reinterpret_cast<T*>(raw));
    } else {
      return *std::launder(reinterpret_cast<T**>(raw));
    }
  }

  template <typename T>
  static void move(void* destination, void* origin) noexcept {
    if constexpr (in_place<T>) {
      T* source = std::launder(static_cast<T*>(origin));
      ::new (destination) T(std::move(*source));
      source->~T();
    } else {
      ::new (destination) T*(*std::launder(static_cast<T**>(origin)));
    }
  }

  template <typename T>
  static void destroy(void* storage) noexcept {
    if constexpr (in_place<T>) {
      std::launder(static_cast<T*>(storage))->~T();
    } else {
      delete *std::launder(static_cast<T**>(storage));
    }
  }

  template <typename T>
  static constexpr kind kind_of{
      typeid(T), &move<T>,
      in_place<T>&& std::is_trivially_destructible_v<T> ? nullptr : &destroy<T>};

  void adopt(value_slot& other) noexcept {
    kind_ = other.kind_;
    other.kind_ = nullptr;
    if (kind_ != nullptr) kind_->move(storage_, other.storage_);
  }

  const kind* kind_ = nullptr;
  alignas(std::max_align_t) std::byte storage_[32];
};

}}}  // namespace motet::MOTET_ABI::detail
