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
  explicit pop_case(basic_channel<T, Sharing>& from) noexcept
      : select_branch(Sharing::shared), channel(from) {}
  pop_case(pop_case&& unused) noexcept : select_branch(unused), channel(unused.channel) {}

  void begin() noexcept { item.reset(); }

  bool proceeds(thread_core& thread) override {
    channel.sharing_.lock();
    if (channel.take(item, &thread) != answer::wait) return true;
    channel.sharing_.unlock();
    return false;
  }
  bool enter(thread_core&) override {
    const std::lock_guard in(channel.sharing_);
    if (channel.items_.size() > 0 || channel.closed_ || channel.givers_.others_wait(*of)) {
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
  void call(F& then) {
    if constexpr (std::is_invocable_v<F&, std::optional<T>>) {
      then(std::move(item));
    } else {
      static_assert(std::is_invocable_v<F&>,
                    "the function of on_pop() takes a std::optional of an item, which is empty "
                    "when the channel is closed, or nothing");
      if constexpr (std::is_invocable_v<F&>) then();
    }
  }

  using answer = typename basic_channel<T, Sharing>::answer;
  basic_channel<T, Sharing>& channel;
  std::optional<T> item;
};

template <typename T, typename Sharing>
struct push_case final : select_branch {
  push_case(basic_channel<T, Sharing>& to, T& pushed) noexcept
      : select_branch(Sharing::shared), channel(to), item(pushed) {
    slot = std::addressof(item);
  }
  push_case(push_case&& unused) noexcept : push_case(unused.channel, unused.item) {
    enabled = unused.enabled;
  }

  bool proceeds(thread_core& thread) override {
    channel.sharing_.lock();
    const answer now = channel.give(item, &thread);
    if (now == answer::closed) throw_channel_closed();
    if (now == answer::done) return true;
    channel.sharing_.unlock();
    return false;
  }
  bool enter(thread_core&) override {
    const std::lock_guard in(channel.sharing_);
    if (channel.items_.size() < channel.capacity_ || channel.closed_ ||
        channel.takers_.others_wait(*of)) {
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
