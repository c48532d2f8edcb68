// SPDX-License-Identifier: MIT
// See posix/fiber_part.hpp.
#include "posix/fiber_part.hpp"

#include <cstdint>
#include <motet/detail/core/locals.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using holder = local_holder<fiber_part, local_value>;

const std::uint64_t key = next_local_key();

}  // namespace

fiber_part* fiber_part::find() noexcept {
  local_value* const value = find_local(key);
  return value == nullptr ? nullptr : &static_cast<holder*>(value)->value;
}

fiber_part& fiber_part::get() {
  if (fiber_part* const part = find()) return *part;
  local_value base;
  base.key = key;
  auto* const fresh = new holder(base, [] { return fiber_part(); });
  add_local(*fresh);
  return fresh->value;
}

}}}  // namespace motet::MOTET_ABI::detail
