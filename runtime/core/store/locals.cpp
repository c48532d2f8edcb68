// SPDX-License-Identifier: MIT
// See detail/core/locals.hpp.
#include <motet/detail/core/locals.hpp>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

local_value* local_list::find(std::uint64_t key) const noexcept {
  if (dying_ != nullptr && dying_->key == key) return dying_;
  local_value* item = newest_value_;
  while (item != nullptr && item->key != key) item = item->older_value;
  return item;
}

local_list local_list::copies() const {
  std::vector<const local_value*> originals;
  for (const local_value* item = newest_value_; item != nullptr; item = item->older_value) {
    if (item->copy != nullptr) originals.push_back(item);
  }
  local_list list;
  for (; !originals.empty(); originals.pop_back()) {
    list.add(*originals.back()->copy(*originals.back()));
  }
  return list;
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

}}}  // namespace motet::MOTET_ABI::detail
