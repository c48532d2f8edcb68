// SPDX-License-Identifier: MIT
// How a library that defines functions of the C library under their own names finds those that it
// stands before.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <motet/detail/base/abi.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Finds a function of the libraries behind this one in the order of the search. One that is not
/// there keeps its stand-in.
/// Source: dlsym(3), RTLD_NEXT.
template <typename Function>
void find_next(Function& function, const char* name) noexcept {
  if (void* const address = ::dlsym(RTLD_NEXT, name); address != nullptr)
    function = reinterpret_cast<Function>(address);
}

/// Returns: whether MOTET_POSIX=off is set: all calls are the C library's.
inline bool is_off_in_environment() noexcept {
  const char* const mode = std::getenv("MOTET_POSIX");
  return mode != nullptr && std::string_view(mode) == "off";
}

/// Stands for a function of `Table` until `Resolve` has found it.
template <auto& Table, auto Resolve, auto Member, typename Result, typename... Arguments>
Result find_and_call(Arguments... arguments) {
  const auto stand_in = Table.*Member;
  Resolve();
  if (Table.*Member == stand_in) std::abort();  // a program without a dynamic C library
  return (Table.*Member)(arguments...);
}

template <auto& Table, auto Resolve, auto Member, typename Library, typename Result,
          typename... Arguments>
consteval auto stand_in(Result (*Library::*)(Arguments...)) {
  return &find_and_call<Table, Resolve, Member, Result, Arguments...>;
}
template <auto& Table, auto Resolve, auto Member, typename Library, typename Result,
          typename... Arguments>
consteval auto stand_in(Result (*Library::*)(Arguments...) noexcept) {
  constexpr auto call = [](Arguments... arguments) noexcept -> Result {
    return find_and_call<Table, Resolve, Member, Result, Arguments...>(arguments...);
  };
  return static_cast<Result (*)(Arguments...) noexcept>(call);
}
/// Set by hand.
template <auto& Table, auto Resolve, auto Member, typename Library, typename Result,
          typename... Arguments>
consteval auto stand_in(Result (*Library::*)(Arguments..., ...)) {
  return static_cast<Result (*)(Arguments..., ...)>(nullptr);
}

}}}  // namespace motet::MOTET_ABI::detail
