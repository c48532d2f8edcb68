// SPDX-License-Identifier: MIT
// How the core runs, destroys and gets the result of a callable whose type it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/detail/base/value_slot.hpp>
#include <new>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether the storage of a fiber's result holds an object, and whether that has been moved from.
enum class result_state : std::uint8_t { none, stands, taken };

/// In bytes; a larger or over-aligned result is on the heap.
inline constexpr std::size_t small_result = 32;
/// In bytes; a larger or over-aligned body is on the fiber's stack, which is then allocated from
/// the start.
inline constexpr std::size_t small_body = 64;

struct body_kind {
  std::size_t size;
  std::size_t alignment;
  bool is_small;  // it stands beside the control block, and needs no stack before it runs
  /// Extra stack for a body of more than a page, which would otherwise use the stack up.
  std::size_t more_stack;
  std::size_t result_size;  // 0: void
  std::size_t result_alignment;
  bool result_is_small;
  /// Calls the body and puts its return value into `result`, where a value may stand already.
  void (*run)(void* body, void* result, result_state& state);
  void (*destroy_body)(void* body) noexcept;  // null: the destructor is trivial
  void (*destroy_result)(void* result) noexcept;
  /// Puts a value that was given to stop() into `result`.
  void (*emplace)(void* result, value_slot& value);
};

template <typename Body, typename Result>
struct body_kind_of {
  static void run(void* body, void* result, result_state& state) {
    auto& callable = *static_cast<Body*>(body);
    if constexpr (std::is_void_v<Result>) {
      callable();
      state = result_state::none;
    } else {
      Result value = callable();
      if (state != result_state::none) destroy_result(result);
      state = result_state::none;
      ::new (result) Result(std::move(value));
      state = result_state::stands;
    }
  }

  static void destroy_body(void* body) noexcept { std::destroy_at(static_cast<Body*>(body)); }

  static void destroy_result([[maybe_unused]] void* result) noexcept {
    if constexpr (!std::is_void_v<Result>) std::destroy_at(static_cast<Result*>(result));
  }

  static void emplace([[maybe_unused]] void* result, [[maybe_unused]] value_slot& value) {
    if constexpr (!std::is_void_v<Result>) {
      ::new (result) Result(value.template take<Result>());
    }
  }

  static constexpr std::size_t result_size() {
    if constexpr (std::is_void_v<Result>) {
      return 0;
    } else {
      return sizeof(Result);
    }
  }

  static constexpr std::size_t result_alignment() {
    if constexpr (std::is_void_v<Result>) {
      return 1;
    } else {
      return alignof(Result);
    }
  }

  static constexpr bool result_is_small() {
    return result_size() <= small_result && result_alignment() <= alignof(std::max_align_t);
  }

  static constexpr std::size_t more_stack() { return sizeof(Body) > 4096 ? sizeof(Body) : 0; }

  static constexpr body_kind kind{
      sizeof(Body),
      alignof(Body),
      sizeof(Body) <= small_body && alignof(Body) <= alignof(std::max_align_t),
      more_stack(),
      result_size(),
      result_alignment(),
      result_is_small(),
      &run,
      std::is_trivially_destructible_v<Body> ? nullptr : &destroy_body,
      &destroy_result,
      &emplace};
};

}}}  // namespace motet::MOTET_ABI::detail
