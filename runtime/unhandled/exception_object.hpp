// SPDX-License-Identifier: MIT
// The header that the C++ runtime keeps in front of an exception object, and the chain of the
// exceptions whose handlers a fiber has entered and not left.
// Source: Itanium C++ ABI: Exception Handling, 2.2.1; libstdc++ adds the dependent exceptions that
// std::rethrow_exception makes, which refer to the primary exception's object. So does libc++abi,
// in front of the header, where it has two more words (cxa_exception.h).
#pragma once

#include <unwind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <motet/detail/base/abi.hpp>
#include <typeinfo>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct exception_header {
  /// The type; in a dependent exception of libstdc++ the object itself.
  const void* type_or_object;
  void (*destroy)(void*);
  void (*unexpected)();
  void (*terminate)();
  void* next;
  int handlers;
  int switch_value;
  const unsigned char* action;
  const unsigned char* language_data;
  std::uintptr_t catch_temporary;
  void* adjusted;
  _Unwind_Exception unwind;
};

inline exception_header& header_of(void* object) noexcept {
  return static_cast<exception_header*>(object)[-1];
}

inline const std::type_info& type_of(void* object) noexcept {
  return *static_cast<const std::type_info*>(header_of(object).type_or_object);
}

/// Returns: the object that `error`, which is not null, refers to.
inline void* object_of(const std::exception_ptr& error) noexcept {
  static_assert(sizeof(error) == sizeof(void*));
  void* object = nullptr;
  std::memcpy(static_cast<void*>(&object), static_cast<const void*>(&error), sizeof object);
  return object;
}

#if defined(_LIBCPP_VERSION)
inline constexpr std::uint64_t kind_of_cpp = 0x434c4e47432b2b00;  // "CLNGC++\0"
inline constexpr std::size_t words_in_front = 2;

inline void* primary_of(exception_header& dependent) noexcept {
  return reinterpret_cast<void**>(&dependent)[-1];
}
#else
inline constexpr std::uint64_t kind_of_cpp = 0x474e5543432b2b00;  // "GNUCC++\0"
inline constexpr std::size_t words_in_front = 0;

inline void* primary_of(exception_header& dependent) noexcept {
  return const_cast<void*>(dependent.type_or_object);
}
#endif

/// Returns: the header of the exception that a pointer of the chain links to, or null.
inline exception_header* header_at(void* object) noexcept {
  if (object == nullptr) return nullptr;
  return reinterpret_cast<exception_header*>(static_cast<void**>(object) + words_in_front);
}

/// Returns: the object that was caught; null for an exception that is not of C++.
inline void* caught_object(exception_header& header) noexcept {
  const std::uint64_t kind = header.unwind.exception_class;
  if (kind == kind_of_cpp) return &header + 1;
  if (kind == (kind_of_cpp | 1)) return primary_of(header);  // the last byte: dependent
  return nullptr;
}

/// Returns: whether `looked_for(object)` holds for any of the exceptions in the chain that begins
/// at `header`, see exception_state.
template <typename Predicate>
bool any_caught(void* header, Predicate looked_for) noexcept {
  for (auto* entry = header_at(header); entry != nullptr; entry = header_at(entry->next)) {
    void* object = caught_object(*entry);
    if (object == nullptr) return false;  // an exception of another language ends the chain
    if (looked_for(object)) return true;
  }
  return false;
}

}}}  // namespace motet::MOTET_ABI::detail
