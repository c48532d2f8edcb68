// SPDX-License-Identifier: MIT
// The channels of Boost.Fiber, between fibers and threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <iterator>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/compat/boost_fiber/errors.hpp>
#include <motet/detail/base/left_until.hpp>
#include <motet/sync/channel.hpp>
#include <optional>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

enum class channel_op_status { success = 0, empty, full, closed, timeout };

/// The members that both kinds of channels share.
template <typename T>
class basic_channel {
 public:
  using value_type = T;

  basic_channel(const basic_channel&) = delete;
  basic_channel& operator=(const basic_channel&) = delete;

  /// Not a switchpoint.
  bool is_closed() const { return items_.stats().closed; }
  /// Remaining items can still be popped.
  /// Not a switchpoint.
  void close() { items_.close(); }

  /// Returns: success or closed.
  /// Switchpoint.
  channel_op_status push(const T& item) { return push(T(item)); }
  channel_op_status push(T&& item) {
    return unless_closed([&] {
      items_.push(std::move(item));
      return channel_op_status::success;
    });
  }
  /// Returns: success, closed or timeout; `item` is moved from only on success.
  /// Switchpoint.
  template <typename Rep, typename Period>
  channel_op_status push_wait_for(T&& item, const std::chrono::duration<Rep, Period>& limit) {
    motet::detail::here_core().deliver();
    return unless_closed([&] {
      if (items_.try_push(std::move(item))) return channel_op_status::success;
      const auto wait = [&] { items_.push(std::move(item)); };
      return motet::move_on_after(limit, wait) ? channel_op_status::success
                                               : channel_op_status::timeout;
    });
  }
  template <typename Rep, typename Period>
  channel_op_status push_wait_for(const T& item, const std::chrono::duration<Rep, Period>& limit) {
    return push_wait_for(T(item), limit);
  }
  template <typename Clock, typename Duration>
  channel_op_status push_wait_until(T&& item, const std::chrono::time_point<Clock, Duration>& end) {
    return push_wait_for(std::move(item), detail::remaining_until(end));
  }
  template <typename Clock, typename Duration>
  channel_op_status push_wait_until(const T& item,
                                    const std::chrono::time_point<Clock, Duration>& end) {
    return push_wait_for(T(item), detail::remaining_until(end));
  }

  /// Returns: success, or closed if the channel is closed and empty.
  /// Switchpoint.
  channel_op_status pop(T& item) { return put(item, items_.pop(), channel_op_status::closed); }
  /// Returns: what was popped.
  /// Switchpoint.
  /// Throws: fiber_error if the channel is closed and empty.
  T value_pop() {
    std::optional<T> result = items_.pop();
    if (!result) {
      throw fiber_error(make_error_code(std::errc::operation_not_permitted),
                        "the channel is closed");
    }
    return *std::move(result);
  }
  /// Returns: success, closed or timeout.
  /// Switchpoint.
  template <typename Rep, typename Period>
  channel_op_status pop_wait_for(T& item, const std::chrono::duration<Rep, Period>& limit) {
    motet::detail::here_core().deliver();
    if (std::optional<T> value = items_.try_pop()) return put(item, std::move(value), {});
    std::optional<T> result;
    const auto wait = [&] { result = items_.pop(); };
    if (!motet::move_on_after(limit, wait)) return channel_op_status::timeout;
    return put(item, std::move(result), channel_op_status::closed);
  }
  template <typename Clock, typename Duration>
  channel_op_status pop_wait_until(T& item, const std::chrono::time_point<Clock, Duration>& end) {
    return pop_wait_for(item, detail::remaining_until(end));
  }

  /// Pops one item per step until the channel is closed and empty.
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;

    /// The end.
    /// Not a switchpoint.
    iterator() noexcept = default;
    /// Switchpoint.
    explicit iterator(basic_channel& channel) : channel_(&channel) { ++*this; }

    /// Switchpoint.
    iterator& operator++() {
      item_ = channel_->items_.pop();
      if (!item_) channel_ = nullptr;
      return *this;
    }
    T& operator*() noexcept { return *item_; }
    T* operator->() noexcept { return &*item_; }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.channel_ == b.channel_;
    }

   private:
    basic_channel* channel_ = nullptr;
    std::optional<T> item_;
  };

  /// Switchpoint; so is advancing the iterator.
  iterator begin() { return iterator(*this); }
  /// Not a switchpoint.
  iterator end() noexcept { return {}; }

 protected:
  explicit basic_channel(std::size_t capacity) : items_(capacity) {}

  template <typename F>
  static channel_op_status unless_closed(F&& f) {
    try {
      return f();
    } catch (const motet::channel_closed&) {
      return channel_op_status::closed;
    }
  }

  static channel_op_status put(T& item, std::optional<T> result, channel_op_status otherwise) {
    if (!result) return otherwise;
    item = *std::move(result);
    return channel_op_status::success;
  }

  mutable motet::channel<T> items_;
};

template <typename T>
class buffered_channel : public basic_channel<T> {
 public:
  /// A channel for `capacity` - 1 items.
  /// Not a switchpoint.
  /// Throws: fiber_error unless `capacity` is a power of 2, at least 2.
  explicit buffered_channel(std::size_t capacity) : basic_channel<T>(checked(capacity) - 1) {}

  /// Returns: success, full or closed.
  /// Not a switchpoint.
  channel_op_status try_push(const T& item) { return try_push(T(item)); }
  channel_op_status try_push(T&& item) {
    return this->unless_closed([&] {
      return this->items_.try_push(std::move(item)) ? channel_op_status::success
                                                    : channel_op_status::full;
    });
  }

  /// Returns: success, empty or closed.
  /// Not a switchpoint.
  channel_op_status try_pop(T& item) {
    std::optional<T> result = this->items_.try_pop();
    if (result || !this->is_closed()) {
      return this->put(item, std::move(result), channel_op_status::empty);
    }
    // Items pushed between the two calls, before the channel was closed, are in it now.
    return this->put(item, this->items_.try_pop(), channel_op_status::closed);
  }

 private:
  static std::size_t checked(std::size_t capacity) {
    if (capacity < 2 || (capacity & (capacity - 1)) != 0) {
      throw fiber_error(make_error_code(std::errc::invalid_argument),
                        "the capacity of a channel is a power of 2, at least 2");
    }
    return capacity;
  }
};

/// A push waits until its item is popped.
template <typename T>
class unbuffered_channel : public basic_channel<T> {
 public:
  /// Not a switchpoint.
  unbuffered_channel() : basic_channel<T>(0) {}
};

/// Switchpoint; so is advancing the iterator.
template <typename T>
typename basic_channel<T>::iterator begin(basic_channel<T>& channel) {
  return channel.begin();
}
/// Not a switchpoint.
template <typename T>
typename basic_channel<T>::iterator end(basic_channel<T>& channel) noexcept {
  return channel.end();
}

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
