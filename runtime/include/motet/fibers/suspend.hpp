// SPDX-License-Identifier: MIT
// Waiting for an event that a callable arranges: the way to build a new kind of wait.
#pragma once

#include <cstdint>
#include <motet/base/errors.hpp>
#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/handle.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

/// Stores the one answer to a suspend_with().
class answer {
 public:
  answer(handle fiber, std::uint64_t number) noexcept : fiber_(std::move(fiber)), number_(number) {}
  answer(answer&&) noexcept = default;
  answer& operator=(answer&&) = delete;
  ~answer();

  /// Throws: std::logic_error if the answer has been given.
  void check() const;
  void give(value_slot&& value) noexcept;

 private:
  handle fiber_;
  std::uint64_t number_;
};

using arrange_function = void (*)(void* callable, handle fiber, std::uint64_t number);
value_slot suspend_until_answered(arrange_function arrange, void* callable);

}  // namespace detail

/// Resumes the fiber that called suspend_with(), from any thread, once. Move-only. A resumer that
/// is dropped without having been called makes suspend_with() throw broken_resumer.
template <typename T = void>
class resumer {
 public:
  resumer(detail::handle fiber, std::uint64_t number) noexcept
      : answer_(std::move(fiber), number) {}

  /// Makes the fiber runnable; suspend_with() returns `value`. No effect if that wait has ended.
  /// Not a switchpoint. Any thread.
  /// Throws: std::logic_error if the resumer has been called before; std::bad_alloc for a value of
  ///         more than 32 bytes, and the resumer can then be called again.
  void operator()(T value) {
    answer_.check();
    answer_.give(detail::value_slot::holding<T>(std::move(value)));
  }

 private:
  detail::answer answer_;
};

template <>
class resumer<void> {
 public:
  resumer(detail::handle fiber, std::uint64_t number) noexcept
      : answer_(std::move(fiber), number) {}

  /// As resumer<T>::operator(), without a value.
  /// Not a switchpoint. Any thread.
  void operator()() {
    answer_.check();
    answer_.give(detail::value_slot::holding(detail::nothing{}));
  }

 private:
  detail::answer answer_;
};

/// Calls `arrange(resumer<T>)`, which stores the resumer where an event will call it, and waits
/// until the resumer has been called. `arrange` runs when the wait is already open, so a resumer
/// called at once is not lost.
/// Returns: the value the resumer was called with.
/// Switchpoint.
/// Throws: broken_resumer; what `arrange` throws; a pending interruption; std::logic_error
///         if it is called in the `arrange` of another suspend_with().
template <typename T = void, typename F>
T suspend_with(F&& arrange) {
  const auto call = [](void* callable, detail::handle fiber, std::uint64_t number) {
    (*static_cast<std::remove_reference_t<F>*>(callable))(resumer<T>(std::move(fiber), number));
  };
  auto* callable = const_cast<std::remove_cv_t<std::remove_reference_t<F>>*>(&arrange);
  detail::value_slot value = detail::suspend_until_answered(call, callable);
  if constexpr (!std::is_void_v<T>) return value.template take<T>();
}

}}  // namespace motet::MOTET_ABI
