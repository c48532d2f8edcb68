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

/// `Primitive` has members room_ and is_ready(), which is called under the room's lock.
template <typename Primitive>
struct room_case : select_branch {
  explicit room_case(Primitive& awaited) noexcept
      : select_branch(Primitive::shared), primitive(awaited) {}
  room_case(room_case&& unused) noexcept : select_branch(unused), primitive(unused.primitive) {}

  bool proceeds(thread_core&) override {
    return primitive.room_.look([this] { return primitive.is_ready(); });
  }
  bool enter(thread_core&) override {
    return primitive.room_.enter_unless([this] { return primitive.is_ready(); }, *this);
  }
  void leave_list() noexcept override { primitive.room_.leave(*this); }

  Primitive& primitive;

 protected:
  ~room_case() = default;
};

template <typename Primitive>
struct ready_room_case final : room_case<Primitive> {
  using room_case<Primitive>::room_case;
};

template <typename T>
struct future_case final : room_case<event> {
  explicit future_case(future<T> awaited)
      : room_case<event>(awaited.state().published), kept(std::move(awaited)) {}

  future<T> kept;
};

template <typename Sharing>
struct acquire_case final : select_branch {
  acquire_case(basic_semaphore<Sharing>& from, std::ptrdiff_t count)
      : select_branch(Sharing::shared), permits(from), wanted(count) {
    if (count <= 0) refuse_permits();
  }
  acquire_case(acquire_case&& unused) noexcept
      : select_branch(unused), permits(unused.permits), wanted(unused.wanted) {}

  void begin() noexcept { refused = false; }
  bool proceeds(thread_core&) override { return permits.try_acquire(wanted); }
  bool enter(thread_core&) override {
    const std::lock_guard in(permits.sharing_);
    const bool others = permits.waiting_.others_wait(*of);
    if (permits.closed_ || (permits.free_ >= wanted && !others)) return true;
    number = static_cast<std::size_t>(wanted);
    permits.waiting_.push_back(*this);
    return false;
  }
  void leave_list() noexcept override {
    thread_core* thread = self_core();
    wake_list freed;
    detail::leave(permits.sharing_, *this, [&] { permits.choose(freed, thread); });
    freed.notify(thread);
  }
  void finish() override {
    if (refused) throw_semaphore_closed();
  }

  basic_semaphore<Sharing>& permits;
  const std::ptrdiff_t wanted;
};

/// `Shared` is what the subscription has in common with its source.
template <typename T, typename Shared>
struct next_case final : select_branch {
  explicit next_case(subscription_to<T, Shared>& by)
      : select_branch(Shared::shared), subscription(by), from(&by.source()) {}
  next_case(next_case&& unused) noexcept
      : select_branch(unused), subscription(unused.subscription), from(unused.from) {}

  void begin() {
    found = {};
    from = &subscription.source();
  }
  bool proceeds(thread_core&) override {
    return from->room.look([this] { return subscription.read(*from, found); });
  }
  bool enter(thread_core&) override {
    return from->room.enter_unless(
        [this] {
          reading<T> ahead;
          std::uint64_t from_there = subscription.place_;
          from->read(from_there, ahead);
          return ahead.over;
        },
        *this);
  }
  void leave_list() noexcept override { from->room.leave(*this); }
  void finish() override {
    from->room.look([this] { return subscription.read(*from, found); });
  }

  template <typename F>
  void call(F& then) {
    std::optional<T> next = subscription.copy_of(found);
    if constexpr (std::is_invocable_v<F&, std::optional<T>>) {
      then(std::move(next));
    } else {
      static_assert(std::is_invocable_v<F&>,
                    "the function of on_next() takes a std::optional of an item, which is empty "
                    "when there are no more, or nothing");
      if constexpr (std::is_invocable_v<F&>) then();
    }
  }

  subscription_to<T, Shared>& subscription;
  Shared* from;
  reading<T> found;
};

}}}  // namespace motet::MOTET_ABI::detail
