// SPDX-License-Identifier: MIT
// The common part of subscriptions to a broadcast and to a watch: each has its own position in the
// shared sequence, and waits for items beyond it.
#pragma once

#include <cstdint>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/detail/sync/wait_list.hpp>
#include <optional>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

[[noreturn]] void refuse_empty_subscription();

/// What a subscription has found beyond its place.
template <typename T>
struct reading {
  bool over = false;  // there is a result: a value, or the end
  std::shared_ptr<const T> value;
  std::uint64_t missed = 0;
  std::uint64_t place = 0;  // the place itself
};

/// `Shared` has a member `room`, and read(place, reading), which is called under the room's lock.
template <typename T, typename Shared>
class subscription_to {
 public:
  /// A subscription to nothing; every call on it is a std::logic_error.
  /// Not a switchpoint.
  subscription_to() = default;

 protected:
  subscription_to(std::shared_ptr<Shared> to, std::uint64_t place) noexcept
      : to_(std::move(to)), place_(place) {}

  std::optional<T> wait_for_next(const char* what) {
    Shared& from = source();
    reading<T> found;
    while (!found.over) {
      from.room.wait_unless([&] { return read(from, found); }, what, &from);
    }
    return copy_of(found);
  }

  std::optional<T> look_for_next() {
    Shared& from = source();
    reading<T> found;
    from.room.look([&] { return read(from, found); });
    return copy_of(found);
  }

 private:
  template <typename, typename>
  friend struct next_case;

  Shared& source() const {
    if (to_ == nullptr) refuse_empty_subscription();
    return *to_;
  }
  bool read(Shared& from, reading<T>& into) {
    into.place = place_;
    from.read(place_, into);
    return into.over;
  }
  /// If copying throws, the value counts as not seen.
  std::optional<T> copy_of(const reading<T>& found) {
    if (found.missed > 0) throw items_missed(found.missed);
    if (found.value == nullptr) return std::nullopt;
    try {
      return *found.value;
    } catch (...) {
      place_ = found.place;
      throw;
    }
  }

  std::shared_ptr<Shared> to_;
  std::uint64_t place_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
