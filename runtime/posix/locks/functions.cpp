// SPDX-License-Identifier: MIT
// See posix/locks/functions.hpp.
#include "posix/locks/functions.hpp"

#include "posix/next_function.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

[[gnu::constructor(101)]] void resolve() noexcept {
#define MOTET_LOCK_FIND(name) find_next(real.name, #name);
  MOTET_LOCK_FUNCTIONS(MOTET_LOCK_FIND)
#undef MOTET_LOCK_FIND
  is_switched_off_for_locks = is_off_in_environment();
}

consteval lock_library stand_ins() {
  lock_library early{};
#define MOTET_LOCK_STAND_IN(name) \
  early.name = stand_in<real, &resolve, &lock_library::name>(&lock_library::name);
  MOTET_LOCK_FUNCTIONS(MOTET_LOCK_STAND_IN)
#undef MOTET_LOCK_STAND_IN
  return early;
}

}  // namespace

constinit lock_library real = stand_ins();
constinit bool is_switched_off_for_locks = false;

}}}  // namespace motet::MOTET_ABI::detail
