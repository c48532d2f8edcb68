// SPDX-License-Identifier: MIT
// The two ends of a channel as copyable handles: the channel is closed when its last sender or its
// last receiver is destroyed, so no fiber needs to know which one that will be.
#pragma once

#include <cstddef>
#include <memory>
#include <motet/sync/channel.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

[[noreturn]] void refuse_empty_end();

/// Once the thread of local ends has ended, and no fiber waits there, another may destroy them.
template <typename Channel>
void close_with_end(Channel& channel, bool drops) noexcept {
  try {
    channel.close();
    if (drops) channel.clear();
  } catch (const std::logic_error&) {
  }
}

/// Shared by the copies of a sender, or of a receiver, which drops the items that nobody can pop.
template <typename T, typename Sharing, bool Receives>
struct channel_end {
  using channel_type = basic_channel<T, Sharing>;
  explicit channel_end(std::shared_ptr<channel_type> source) noexcept
      : channel(std::move(source)) {}
  channel_end(const channel_end&) = delete;
  channel_end& operator=(const channel_end&) = delete;
  ~channel_end() { close_with_end(*channel, Receives); }
  const std::shared_ptr<channel_type> channel;
};

/// Returns: the channel of an end.
template <typename End>
auto& channel_of(const End& end) {
  if (end.handle_ == nullptr) refuse_empty_end();
  return *end.handle_->channel;
}

template <typename T, typename Sharing>
class basic_sender {
 public:
  /// A sender without a channel; every call on it throws std::logic_error.
  /// Not a switchpoint.
  basic_sender() = default;

  /// As channel::push(). Also throws channel_closed when no receiver is left.
  /// Switchpoint; switches only if it must wait.
  void push(T&& item) const { channel_of(*this).push(std::move(item)); }
  /// Switchpoint; switches only if it must wait.
  void push(const T& item) const { channel_of(*this).push(item); }

  /// As channel::try_push().
  /// Not a switchpoint.
  bool try_push(T&& item) const { return channel_of(*this).try_push(std::move(item)); }
  /// Not a switchpoint.
  bool try_push(const T& item) const { return channel_of(*this).try_push(item); }

  /// Returns: whether it is the sender of a channel.
  /// Not a switchpoint.
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  template <typename End>
  friend auto& channel_of(const End& end);
  template <typename U, typename S, typename... Capacity>
  friend auto make_ends(Capacity... capacity);

  std::shared_ptr<channel_end<T, Sharing, false>> handle_;
};

template <typename T, typename Sharing>
class basic_receiver {
 public:
  /// A receiver without a channel; every call on it throws std::logic_error.
  /// Not a switchpoint.
  basic_receiver() = default;

  /// As channel::pop().
  /// Returns: std::nullopt if no sender and no item is left.
  /// Switchpoint; switches only if it must wait.
  std::optional<T> pop() const { return channel_of(*this).pop(); }

  /// As channel::try_pop().
  /// Not a switchpoint.
  std::optional<T> try_pop() const { return channel_of(*this).try_pop(); }

  /// Pops until no sender and no item is left.
  /// Switchpoint; so is advancing the iterator.
  auto begin() const { return channel_of(*this).begin(); }
  /// Not a switchpoint.
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Returns: whether it is the receiver of a channel.
  /// Not a switchpoint.
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  template <typename End>
  friend auto& channel_of(const End& end);
  template <typename U, typename S, typename... Capacity>
  friend auto make_ends(Capacity... capacity);

  std::shared_ptr<channel_end<T, Sharing, true>> handle_;
};

template <typename T, typename Sharing, typename... Capacity>
auto make_ends(Capacity... capacity) {
  const auto channel = std::make_shared<basic_channel<T, Sharing>>(capacity...);
  std::pair<basic_sender<T, Sharing>, basic_receiver<T, Sharing>> ends;
  ends.first.handle_ = std::make_shared<channel_end<T, Sharing, false>>(channel);
  ends.second.handle_ = std::make_shared<channel_end<T, Sharing, true>>(channel);
  return ends;
}

}  // namespace detail

/// One end of a channel. Copies send to the same channel. When the last one is destroyed, the
/// channel is closed; its items can still be popped. Any thread.
template <typename T>
using sender = detail::basic_sender<T, detail::shared_policy>;

/// The other end: copies share the items. When the last one is gone, the channel is closed and its
/// items are destroyed. Any thread.
template <typename T>
using receiver = detail::basic_receiver<T, detail::shared_policy>;

/// Makes a channel for `capacity` items, as channel(), and returns its ends as a std::pair.
/// Not a switchpoint.
/// Throws: std::bad_alloc; std::invalid_argument for more items than any memory holds.
template <typename T>
auto make_channel(std::size_t capacity = 0) {
  return detail::make_ends<T, detail::shared_policy>(capacity);
}
/// The same without a capacity limit.
/// Not a switchpoint.
template <typename T>
auto make_channel(unbounded_t) {
  return detail::make_ends<T, detail::shared_policy>(unbounded);
}

namespace local {

/// Between the fibers of one thread.
template <typename T>
using sender = detail::basic_sender<T, detail::local_policy>;
template <typename T>
using receiver = detail::basic_receiver<T, detail::local_policy>;

/// Not a switchpoint.
template <typename T>
auto make_channel(std::size_t capacity = 0) {
  return detail::make_ends<T, detail::local_policy>(capacity);
}
/// Not a switchpoint.
template <typename T>
auto make_channel(unbounded_t) {
  return detail::make_ends<T, detail::local_policy>(unbounded);
}

}  // namespace local

}}  // namespace motet::MOTET_ABI
