// SPDX-License-Identifier: MIT
// The branches of a select() that wait on a channel.
#pragma once

#include <memory>
#include <motet/detail/sync/select_branch.hpp>
#include <motet/sync/channel.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <typename T, typename Sharing, typename Store>
struct pop_case final : select_branch {
  using queue = channel_queue<T, Sharing, Store>;

  explicit pop_case(queue& source) noexcept : select_branch(Sharing::shared), channel(source) {}
  pop_case(pop_case&& other) noexcept : select_branch(other), channel(other.channel) {}

  void begin() noexcept { item.reset(); }

  bool proceeds(thread_core& thread) override { return channel.try_receive(item, &thread); }
  bool enter(thread_core&) override {
    slot = std::addressof(item);
    return channel.enter_receiver(*this);
  }
  void leave_list() noexcept override { channel.leave(*this); }

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

  queue& channel;
  std::optional<T> item;
};

template <typename T, typename Sharing, typename Store>
struct push_case final : select_branch {
  using queue = channel_queue<T, Sharing, Store>;

  push_case(queue& destination, T& source) noexcept
      : select_branch(Sharing::shared), channel(destination), item(source) {
    slot = std::addressof(item);
  }
  push_case(push_case&& other) noexcept : push_case(other.channel, other.item) {
    enabled = other.enabled;
  }

  bool proceeds(thread_core& thread) override { return channel.try_send(item, &thread); }
  bool enter(thread_core&) override { return channel.enter_sender(*this); }
  void leave_list() noexcept override { channel.leave(*this); }
  void finish() override {
    if (refused) throw_channel_closed();
  }

  queue& channel;
  T& item;
};

}}}  // namespace motet::MOTET_ABI::detail
