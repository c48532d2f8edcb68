// SPDX-License-Identifier: MIT
// A pointer that owns.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/taken.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Owns an object, or an array, made with new. In a public header std::unique_ptr costs each
/// program that includes it 5 to 10 ms a type to compile; this type costs next to nothing.
template <typename T>
class owned {
  using object_type = std::remove_extent_t<T>;

 public:
  constexpr owned() noexcept = default;
  explicit owned(object_type* object) noexcept : object_(object) {}
  owned(owned&& other) noexcept : object_(taken(other.object_)) {}
  owned& operator=(owned&& other) noexcept {
    owned(std::move(other)).swap(*this);
    return *this;
  }
  ~owned() {
    static_assert(sizeof(object_type) > 0, "the type must be complete where it is deleted");
    if constexpr (std::is_array_v<T>) {
      delete[] object_;
    } else {
      delete object_;
    }
  }

  object_type* get() const noexcept { return object_; }
  object_type* release() noexcept { return taken(object_); }
  object_type& operator*() const noexcept { return *object_; }
  object_type* operator->() const noexcept { return object_; }
  bool operator==(std::nullptr_t) const noexcept { return object_ == nullptr; }

  void swap(owned& other) noexcept { object_ = taken(other.object_, object_); }

 private:
  object_type* object_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
