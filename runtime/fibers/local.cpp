// SPDX-License-Identifier: MIT
// See detail/core/locals.hpp.
#include <atomic>
#include <motet/detail/core/inherited_locals.hpp>
#include <motet/detail/core/locals.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

local_value* find_local(std::uint64_t key) {
  const cold_part* part = cold_if_any(here().running());
  return part == nullptr ? nullptr : part->locals.find(key);
}

void add_local(local_object& object) noexcept {
  cold(self()->running()).locals.add(object);
}

void add_local(local_value& object) noexcept {
  cold(self()->running()).locals.add(object);
}

void come_into(local_list&& inherited_locals) noexcept {
  cold(self()->running()).locals = std::move(inherited_locals);
}

std::uint64_t next_local_key() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}}}  // namespace motet::MOTET_ABI::detail
