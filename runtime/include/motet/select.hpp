// SPDX-License-Identifier: MIT
// Waiting for several things at once: select() takes exactly one branch, the first that is ready.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <memory>
#include <motet/channel.hpp>
#include <motet/clock.hpp>
#include <motet/detail/waiting/select_branch.hpp>
#include <motet/detail/words/timespan.hpp>
#include <motet/fiber.hpp>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// select() with this as its first argument takes the first branch that can proceed.
struct in_order_t {};
inline constexpr in_order_t in_order{};

namespace detail {

template <typename T, typename Sharing>
struct pop_case final : select_branch {
  explicit pop_case(basic_channel<T, Sharing>& from) noexcept
      : select_branch(Sharing::shared), channel(from) {
    slot = std::addressof(item);
  }

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
      then();
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

/// A branch, and the handler to call when the branch was taken.
template <typename Branch, typename F>
struct select_case {
  Branch branch;
  F then;
};

struct nothing_to_do {
  void operator()() const noexcept {}
};

template <typename... Branches, typename... Handlers>
std::size_t select_among(bool as_they_are, select_case<Branches, Handlers>&... cases) {
  std::array<select_branch*, sizeof...(cases)> branches{&cases.branch...};
  for (std::size_t i = 0; i < branches.size(); ++i) branches[i]->index = i;
  const select_branch& taken = take_one(branches, as_they_are);
  const auto run = [&](auto& each) {
    if (&each.branch == &taken) each.branch.call(each.then);
  };
  (run(cases), ...);
  return taken.index;
}

}  // namespace detail

/// A branch that pops from `from` and then calls `then(std::optional<T>)`, or `then()`. The
/// optional is empty if the channel is closed and empty.
/// Not a switchpoint.
template <typename T, typename Sharing, typename F = detail::nothing_to_do>
auto on_pop(detail::basic_channel<T, Sharing>& from, F then = {}) {
  using branch = detail::pop_case<T, Sharing>;
  return detail::select_case<branch, F>{branch(from), std::move(then)};
}

/// A branch that pushes `item` to `to` and then calls `then()`. Unless the branch is taken, the
/// caller keeps `item`. If the channel is closed, select() throws channel_closed.
/// Not a switchpoint.
template <typename T, typename Sharing, typename F = detail::nothing_to_do>
auto on_push(detail::basic_channel<T, Sharing>& to, std::type_identity_t<T>&& item, F then = {}) {
  using branch = detail::push_case<T, Sharing>;
  return detail::select_case<branch, F>{branch(to, item), std::move(then)};
}

/// A branch that is taken when `fiber` has ended, and then calls `then()`. fiber_ref::await() tells
/// how the fiber has ended.
/// Not a switchpoint.
/// Throws: std::logic_error for an empty handle.
template <typename F = detail::nothing_to_do>
auto on_end(const fiber_ref& fiber, F then = {}) {
  return detail::select_case<detail::end_case, F>{detail::end_case(fiber), std::move(then)};
}

/// A branch that is taken when reading from the descriptor would not wait, and then calls `then()`.
/// Not a switchpoint.
template <typename F = detail::nothing_to_do>
auto on_readable(int fd, F then = {}) {
  return detail::select_case<detail::ready_case, F>{detail::ready_case(fd, POLLIN),
                                                    std::move(then)};
}

/// A branch that is taken when writing to the descriptor would not wait, and then calls `then()`.
/// Not a switchpoint.
template <typename F = detail::nothing_to_do>
auto on_writable(int fd, F then = {}) {
  return detail::select_case<detail::ready_case, F>{detail::ready_case(fd, POLLOUT),
                                                    std::move(then)};
}

/// A branch that is taken when `span` has passed and no other branch was taken, and then calls
/// `then()`. With a span of 0, select() does not wait.
/// Not a switchpoint.
template <typename F = detail::nothing_to_do>
auto on_timeout(detail::timespan span, F then = {}) {
  return detail::select_case<detail::time_case, F>{detail::time_case(span.length), std::move(then)};
}

/// Waits until one of the branches `cases` can proceed, takes that branch alone, and calls its
/// handler. If several branches can proceed, each has an equal chance. If select() is interrupted,
/// no branch has been taken.
/// Returns: the place of the branch that was taken among the arguments, from 0.
/// Switchpoint; switches only if it must wait. Starts a runtime on a thread that has none.
/// Throws: what is pending for this fiber, what a branch or its handler throws;
///         std::logic_error if a channel is destroyed meanwhile.
template <typename... Branches, typename... Handlers>
std::size_t select(detail::select_case<Branches, Handlers>&&... cases) {
  static_assert(sizeof...(cases) > 0, "select() needs something to wait for");
  return detail::select_among(false, cases...);
}

/// The same, but of several branches that can proceed it takes the first one given.
/// Switchpoint; switches only if it must wait.
template <typename... Branches, typename... Handlers>
std::size_t select(in_order_t, detail::select_case<Branches, Handlers>&&... cases) {
  static_assert(sizeof...(cases) > 0, "select() needs something to wait for");
  return detail::select_among(true, cases...);
}

}}  // namespace motet::MOTET_ABI
