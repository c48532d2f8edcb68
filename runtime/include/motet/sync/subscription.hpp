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

/// What a subscription has found beyond its position.
template <typename T>
struct reading {
  bool complete = false;  // there is a result: a value, or the end
  std::shared_ptr<const T> value;
  std::uint64_t miss_count = 0;
  std::uint64_t position = 0;  // of the subscription afterwards
};

/// `Shared` has a member `waiters`, and read(position, reading), which is called under their lock.
template <typename T, typename Shared>
class subscription_to {
 public:
  /// A subscription to nothing; every call on it is a std::logic_error.
  /// Not a switchpoint.
  subscription_to() = default;

 protected:
  subscription_to(std::shared_ptr<Shared> source_state, std::uint64_t position) noexcept
      : state_(std::move(source_state)), position_(position) {}

  std::optional<T> wait_for_next(const char* description) {
    Shared& state = source();
    reading<T> result;
    while (!result.complete) {
      state.waiters.wait_unless([&] { return read(state, result); }, description, &state);
    }
    return copy_of(result);
  }

  std::optional<T> look_for_next() {
    Shared& state = source();
    reading<T> result;
    state.waiters.look([&] { return read(state, result); });
    return copy_of(result);
  }

 private:
  template <typename, typename>
  friend struct next_case;

  Shared& source() const {
    if (state_ == nullptr) refuse_empty_subscription();
    return *state_;
  }
  bool read(Shared& state, reading<T>& result) {
    result.position = position_;
    state.read(position_, result);
    return result.complete;
  }
  /// If copying throws, the value counts as not seen.
  std::optional<T> copy_of(const reading<T>& result) {
    if (result.miss_count > 0) throw items_missed(result.miss_count);
    if (result.value == nullptr) return std::nullopt;
    try {
      return *result.value;
    } catch (...) {
      position_ = result.position;
      throw;
    }
  }

  std::shared_ptr<Shared> state_;
  std::uint64_t position_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
