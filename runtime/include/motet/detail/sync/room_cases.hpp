// SPDX-License-Identifier: MIT
// The branches of a select() that wait for an event, a latch, a future, permits of a semaphore, or
// the next item of a subscription.
#pragma once

#include <cstddef>
#include <motet/detail/sync/select_branch.hpp>
#include <motet/sync/broadcast.hpp>
#include <motet/sync/event.hpp>
#include <motet/sync/future.hpp>
#include <motet/sync/latch.hpp>
#include <motet/sync/semaphore.hpp>
#include <motet/sync/watch.hpp>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// `Primitive` has members waiters_ and is_ready(), which is called under their lock.
template <typename Primitive>
struct basic_state_case : select_branch {
  explicit basic_state_case(Primitive& object) noexcept
      : select_branch(Primitive::shared), primitive(object) {}
  basic_state_case(basic_state_case&& other) noexcept
      : select_branch(other), primitive(other.primitive) {}

  bool proceeds(thread_core&) override {
    return primitive.waiters_.look([this] { return primitive.is_ready(); });
  }
  bool enter(thread_core&) override {
    return primitive.waiters_.enter_unless([this] { return primitive.is_ready(); }, *this);
  }
  void leave_list() noexcept override { primitive.waiters_.leave(*this); }

  Primitive& primitive;

 protected:
  ~basic_state_case() = default;
};

template <typename Primitive>
struct state_case final : basic_state_case<Primitive> {
  using basic_state_case<Primitive>::basic_state_case;
};

template <typename T>
struct future_case final : basic_state_case<publication> {
  explicit future_case(future<T> result)
      : basic_state_case<detail::publication>(result.state().publication),
        source(std::move(result)) {}

  future<T> source;
};

template <typename Sharing>
struct acquire_case final : select_branch {
  acquire_case(basic_semaphore<Sharing>& semaphore, std::ptrdiff_t count)
      : select_branch(Sharing::shared), permits(semaphore), permit_count(count) {
    if (count <= 0) refuse_permits();
  }
  acquire_case(acquire_case&& other) noexcept
      : select_branch(other), permits(other.permits), permit_count(other.permit_count) {}

  void begin() noexcept { refused = false; }
  bool proceeds(thread_core&) override { return permits.try_acquire(permit_count); }
  bool enter(thread_core&) override {
    const std::lock_guard lock(permits.sharing_);
    const bool queued = permits.waiters_.others_wait(*owner);
    if (permits.closed_ || (permits.free_ >= permit_count && !queued)) return true;
    number = static_cast<std::size_t>(permit_count);
    permits.waiters_.push_back(*this);
    return false;
  }
  void leave_list() noexcept override {
    thread_core* thread = self_core();
    wake_list waiters;
    detail::leave(permits.sharing_, *this, [&] { permits.choose(waiters, thread); });
    waiters.notify(thread);
  }
  void finish() override {
    if (refused) throw_semaphore_closed();
  }

  basic_semaphore<Sharing>& permits;
  const std::ptrdiff_t permit_count;
};

/// `Shared` is what the subscription has in common with its source.
template <typename T, typename Shared>
struct next_case final : select_branch {
  explicit next_case(subscription_to<T, Shared>& subscriber)
      : select_branch(Shared::shared), subscription(subscriber), state(&subscriber.source()) {}
  next_case(next_case&& other) noexcept
      : select_branch(other), subscription(other.subscription), state(other.state) {}

  void begin() {
    result = {};
    state = &subscription.source();
  }
  bool proceeds(thread_core&) override {
    return state->waiters.look([this] { return subscription.read(*state, result); });
  }
  bool enter(thread_core&) override {
    return state->waiters.enter_unless(
        [this] {
          reading<T> ahead;
          std::uint64_t from_there = subscription.position_;
          state->read(from_there, ahead);
          return ahead.complete;
        },
        *this);
  }
  void leave_list() noexcept override { state->waiters.leave(*this); }
  void finish() override {
    state->waiters.look([this] { return subscription.read(*state, result); });
  }

  template <typename F>
  void call(F& handler) {
    std::optional<T> next = subscription.copy_of(result);
    if constexpr (std::is_invocable_v<F&, std::optional<T>>) {
      handler(std::move(next));
    } else {
      static_assert(std::is_invocable_v<F&>,
                    "the function of on_next() takes a std::optional of an item, which is empty "
                    "when there are no more, or nothing");
      if constexpr (std::is_invocable_v<F&>) handler();
    }
  }

  subscription_to<T, Shared>& subscription;
  Shared* state;
  reading<T> result;
};

}}}  // namespace motet::MOTET_ABI::detail
