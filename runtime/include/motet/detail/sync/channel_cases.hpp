// SPDX-License-Identifier: MIT
// The branches of a select() that wait on a channel.
#pragma once

#include <memory>
#include <motet/detail/sync/select_branch.hpp>
#include <motet/sync/channel.hpp>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <typename T, typename Sharing>
struct pop_case final : select_branch {
  explicit pop_case(basic_channel<T, Sharing>& source) noexcept
      : select_branch(Sharing::shared), channel(source) {}
  pop_case(pop_case&& other) noexcept : select_branch(other), channel(other.channel) {}

  void begin() noexcept { item.reset(); }

  bool proceeds(thread_core& thread) override {
    channel.sharing_.lock();
    if (channel.take(item, &thread) != answer::wait) return true;
    channel.sharing_.unlock();
    return false;
  }
  bool enter(thread_core&) override {
    const std::lock_guard lock(channel.sharing_);
    if (channel.items_.size() > 0 || channel.closed_ || channel.givers_.others_wait(*owner)) {
      return true;
    }
    slot = std::addressof(item);
    channel.takers_.push_back(*this);
    return false;
  }
  void leave_list() noexcept override {
    detail::leave(channel.sharing_, *this, [] {});
  }

  template <typename F>
  void call(F& handler) {
    if constexpr (std::is_invocable_v<F&, std::optional<T>>) {
      handler(std::move(item));
    } else {
      static_assert(std::is_invocable_v<F&>,
                    "the function of on_pop() takes a std::optional of an item, which is empty "
                    "when the channel is closed, or nothing");
      if constexpr (std::is_invocable_v<F&>) handler();
    }
  }

  using answer = typename basic_channel<T, Sharing>::answer;
  basic_channel<T, Sharing>& channel;
  std::optional<T> item;
};

template <typename T, typename Sharing>
struct push_case final : select_branch {
  push_case(basic_channel<T, Sharing>& destination, T& source) noexcept
      : select_branch(Sharing::shared), channel(destination), item(source) {
    slot = std::addressof(item);
  }
  push_case(push_case&& other) noexcept : push_case(other.channel, other.item) {
    enabled = other.enabled;
  }

  bool proceeds(thread_core& thread) override {
    channel.sharing_.lock();
    const answer result = channel.give(item, &thread);
    if (result == answer::closed) throw_channel_closed();
    if (result == answer::done) return true;
    channel.sharing_.unlock();
    return false;
  }
  bool enter(thread_core&) override {
    const std::lock_guard lock(channel.sharing_);
    if (channel.items_.size() < channel.capacity_ || channel.closed_ ||
        channel.takers_.others_wait(*owner)) {
      return true;
    }
    channel.givers_.push_back(*this);
    return false;
  }
  void leave_list() noexcept override {
    detail::leave(channel.sharing_, *this, [] {});
  }
  void finish() override {
    if (refused) throw_channel_closed();
  }

  using answer = typename basic_channel<T, Sharing>::answer;
  basic_channel<T, Sharing>& channel;
  T& item;
};

}}}  // namespace motet::MOTET_ABI::detail
