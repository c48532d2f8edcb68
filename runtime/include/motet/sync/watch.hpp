// SPDX-License-Identifier: MIT
// A value that changes, of which only the latest state matters: a configuration, a health status.
#pragma once

#include <cstdint>
#include <memory>
#include <motet/sync/subscription.hpp>
#include <optional>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

/// The latest value, which a watch shares with its subscriptions.
template <typename T, typename Sharing>
struct watched_value {
  static constexpr bool shared = Sharing::shared;
  explicit watched_value(std::shared_ptr<const T> first) noexcept : latest(std::move(first)) {}

  /// `position` is the number of the value that was seen last.
  void read(std::uint64_t& position, reading<T>& result) {
    if (position != number) result.value = latest;
    result.complete = position != number || closed;
    position = number;
  }

  wait_queue<Sharing> waiters;
  std::shared_ptr<const T> latest;
  std::uint64_t number = 1;
  bool closed = false;
};

template <typename T, typename Sharing>
class basic_watch {
  using watched = watched_value<T, Sharing>;

 public:
  class subscription;

  /// Throws: std::bad_alloc.
  explicit basic_watch(T first)
      : value_(std::make_shared<watched>(std::make_shared<const T>(std::move(first)))) {}
  basic_watch(const basic_watch&) = delete;
  basic_watch& operator=(const basic_watch&) = delete;
  /// Subscriptions still get the latest value, unless they have seen it, and then std::nullopt.
  /// Not a switchpoint.
  ~basic_watch() {
    value_->waiters.release_at_end([this] { value_->closed = true; });
  }

  /// Replaces the value, whether or not it differs, and ends the waits for a newer one.
  /// Not a switchpoint.
  /// Throws: std::bad_alloc.
  void set(T value) {
    auto newest = std::make_shared<const T>(std::move(value));
    value_->waiters.release_if([&] {
      newest.swap(value_->latest);
      ++value_->number;
      return true;
    });
  }

  /// Returns: a copy of the latest value.
  /// Not a switchpoint.
  T get() const {
    return *value_->waiters.look([this] { return value_->latest; });
  }

  /// Returns: a subscription whose first next() returns the current value immediately.
  /// Not a switchpoint.
  subscription subscribe() const { return subscription(value_, 0); }

 private:
  const std::shared_ptr<watched> value_;
};

/// For one fiber or thread at a time; a copy starts in the same state. It may outlive its watch.
template <typename T, typename Sharing>
class basic_watch<T, Sharing>::subscription : public subscription_to<T, watched> {
 public:
  subscription() = default;

  /// Waits until there is a value that this subscription has not seen. Values that were replaced
  /// meanwhile are skipped.
  /// Returns: a copy of the latest; std::nullopt if the watch is gone and its last value was seen.
  /// Switchpoint; switches only if it must wait.
  /// Throws: a pending interruption; what copying the value throws.
  std::optional<T> next() { return this->wait_for_next("wait for a watched value"); }

  /// As next(), but never waits.
  /// Returns: std::nullopt if next() would wait, or the watch is gone and its last value was seen.
  /// Not a switchpoint.
  /// Throws: what copying the value throws.
  std::optional<T> try_next() { return this->look_for_next(); }

 private:
  friend class basic_watch;
  using subscription_to<T, watched>::subscription_to;
};

}  // namespace detail

/// Between fibers and threads.
template <typename T>
using watch = detail::basic_watch<T, detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
template <typename T>
using watch = detail::basic_watch<T, detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
