// SPDX-License-Identifier: MIT
// Which function an address belongs to, for signal handlers as well: dladdr(3) takes a lock that
// the interrupted code may hold, in the middle of a dlopen(3).
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct symbol {
  const char* file = nullptr;  // null: no loaded object has that address
  const char* name = nullptr;  // mangled; null: no symbol that the object exports
  std::uintptr_t offset = 0;   // from the symbol, or else from the object's load address
};

/// Finds about what dladdr(3) finds, the first exported function that has the address, without a
/// lock. Objects that another thread unloads meanwhile are the program's mistake: the thread has
/// code of theirs in its frames.
symbol symbol_at(const void* address) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
