// SPDX-License-Identifier: MIT
// A doubly linked list of items that contain their own links: removal in O(1), nothing allocated.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The intrusive link of an item in a list. An unlinked one points to itself.
struct link {
  link* predecessor = this;
  link* successor = this;

  link() = default;
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  bool linked() const noexcept { return successor != this; }

  void unlink() noexcept {
    predecessor->successor = successor;
    successor->predecessor = predecessor;
    predecessor = successor = this;
  }
};

/// First in, first out. `Tag` tells apart the lists that one `T` can be in at the same time.
template <typename Tag>
struct tagged_link : link {};

template <typename T, typename Tag>
class list {
 public:
  list() = default;
  list(const list&) = delete;
  list& operator=(const list&) = delete;

  bool empty() const noexcept { return !ends_.linked(); }

  void push_back(T& item) noexcept {
    link& node = link_of(item);
    node.predecessor = ends_.predecessor;
    node.successor = &ends_;
    ends_.predecessor->successor = &node;
    ends_.predecessor = &node;
  }

  void push_front(T& item) noexcept {
    link& node = link_of(item);
    node.predecessor = &ends_;
    node.successor = ends_.successor;
    ends_.successor->predecessor = &node;
    ends_.successor = &node;
  }

  T* front() noexcept { return empty() ? nullptr : item_of(ends_.successor); }

  /// Returns: the item after `item`, or null.
  T* next(T& item) noexcept {
    link* next = link_of(item).successor;
    return next == &ends_ ? nullptr : item_of(next);
  }

  T* pop_front() noexcept {
    T* first = front();
    if (first != nullptr) link_of(*first).unlink();
    return first;
  }

  /// Empties the list without touching its items.
  void abandon() noexcept { ends_.predecessor = ends_.successor = &ends_; }

  static void remove(T& item) noexcept { link_of(item).unlink(); }
  static bool contains(T& item) noexcept { return link_of(item).linked(); }

 private:
  static link& link_of(T& item) noexcept { return static_cast<tagged_link<Tag>&>(item); }
  static T* item_of(link* node) noexcept {
    return &static_cast<T&>(static_cast<tagged_link<Tag>&>(*node));  // a pointer may be null
  }

  link ends_;
};

}}}  // namespace motet::MOTET_ABI::detail
