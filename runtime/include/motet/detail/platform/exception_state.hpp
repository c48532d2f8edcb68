// SPDX-License-Identifier: MIT
// The exceptions whose handlers a fiber has entered and not left, and those in flight. The C++
// runtime keeps them per thread; a fiber that blocks in a handler or a destructor needs its own.
#pragma once

#include <cxxabi.h>

#include <cstdint>
#include <motet/detail/base/abi.hpp>

#if defined(_LIBCPP_VERSION)
namespace __cxxabiv1 {
/// Not in libc++abi's header.
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals();
}  // namespace __cxxabiv1
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Source: Itanium C++ ABI: Exception Handling, 2.2.2, __cxa_eh_globals.
struct exception_state {
  void* chain = nullptr;
  unsigned int uncaught = 0;
};

/// Returns: 0 if there is no exception. The results of several fibers can be or-ed.
inline std::uintptr_t bits_of(const void* stack, unsigned int uncaught) noexcept {
  return reinterpret_cast<std::uintptr_t>(stack) | uncaught;
}

/// This thread's live exception state. Its address never changes; take it once per thread.
inline exception_state* live_exception_state() noexcept {
  return reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
}

}}}  // namespace motet::MOTET_ABI::detail
