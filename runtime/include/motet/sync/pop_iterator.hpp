// SPDX-License-Identifier: MIT
// Goes through a channel by popping.
#pragma once

#include <cstddef>
#include <iterator>
#include <motet/detail/base/abi.hpp>
#include <optional>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Ends when pop() returns nothing.
template <typename Channel>
class pop_iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = typename Channel::value_type;
  using difference_type = std::ptrdiff_t;
  using pointer = value_type*;
  using reference = value_type&;

  explicit pop_iterator(Channel& channel) : channel_(&channel), item_(channel.pop()) {}

  /// Not a switchpoint.
  value_type& operator*() const noexcept { return *item_; }
  /// Not a switchpoint.
  value_type* operator->() const noexcept { return &*item_; }
  /// Switchpoint.
  pop_iterator& operator++() {
    item_ = channel_->pop();
    return *this;
  }
  /// Switchpoint.
  void operator++(int) { ++*this; }
  /// Not a switchpoint.
  friend bool operator==(const pop_iterator& position, std::default_sentinel_t) noexcept {
    return !position.item_.has_value();
  }

 private:
  Channel* channel_;
  mutable std::optional<value_type> item_;
};

}}}  // namespace motet::MOTET_ABI::detail
