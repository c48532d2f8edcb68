// SPDX-License-Identifier: MIT
// See detail/heart/locals.hpp.
#include <atomic>
#include <motet/detail/heart/heirlooms.hpp>
#include <motet/detail/heart/locals.hpp>
#include <vector>

#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

local_value* local_list::find(std::uint64_t key) const noexcept {
  if (dying_ != nullptr && dying_->key == key) return dying_;
  local_value* each = newest_value_;
  while (each != nullptr && each->key != key) each = each->older_value;
  return each;
}

local_list local_list::copies() const {
  std::vector<const local_value*> originals;
  for (const local_value* each = newest_value_; each != nullptr; each = each->older_value) {
    if (each->copy != nullptr) originals.push_back(each);
  }
  local_list made;
  for (; !originals.empty(); originals.pop_back()) {
    made.add(*originals.back()->copy(*originals.back()));
  }
  return made;
}

/// A destructor that asks for the very value it destroys gets that value, as with a thread_local: a
/// new value would be destroyed in turn, and so on for ever.
void local_list::end_all() noexcept {
  while (newest_ != nullptr) {
    local_object& last = *std::exchange(newest_, newest_->older);
    if (newest_value_ == &last) dying_ = std::exchange(newest_value_, newest_value_->older_value);
    last.end(last);
    dying_ = nullptr;
  }
}

local_value* find_local(std::uint64_t key) {
  const cold_part* part = cold_if_any(here().running());
  return part == nullptr ? nullptr : part->locals.find(key);
}

void add_local(local_object& made) noexcept {
  cold(self()->running()).locals.add(made);
}

void add_local(local_value& made) noexcept {
  cold(self()->running()).locals.add(made);
}

void come_into(local_list&& heirlooms) noexcept {
  cold(self()->running()).locals = std::move(heirlooms);
}

std::uint64_t next_local_key() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}}}  // namespace motet::MOTET_ABI::detail
