// SPDX-License-Identifier: MIT
// The watchers of operations: those that libev keeps for streams, by descriptor and direction, and
// those that are an operation's own.
#pragma once

#include <ev.h>
#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/backend.hpp>
#include <motet/detail/words/list.hpp>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "attempt.hpp"
#include "retries.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

inline int events_of(const operation& op) noexcept {
  const short ready = readiness_of(op);
  return ((ready & POLLIN) != 0 ? EV_READ : 0) | ((ready & POLLOUT) != 0 ? EV_WRITE : 0);
}

struct idle_tag;

/// A watcher that stays with its stream's descriptor, started, from one operation to the next: to
/// stop it would cost a system call whenever a poll comes between. Idle while no operation is on
/// it.
struct kept_watcher : tagged_link<idle_tag> {
  ev_io io{};
  std::uint64_t stream = 0;
};

/// In rooms for 64 descriptors each, made when one of them is first used and never moved.
class kept_watchers {
 public:
  /// Returns: the place for the operation's watcher; null if it has no stream, or for want of
  ///          memory.
  kept_watcher* place_for(const operation& op) noexcept {
    if (op.stream == 0) return nullptr;
    const auto number = static_cast<std::size_t>(op.fd) / descriptors;
    try {
      if (number >= rooms_.size()) rooms_.resize(number + 1);
      if (rooms_[number] == nullptr) rooms_[number] = std::make_unique<room>();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return &of(op.fd)[events_of(op) == EV_WRITE ? 1 : 0];
  }

  /// Returns: those of a descriptor, if it ever had any.
  std::span<kept_watcher> find(int fd) noexcept {
    const auto number = static_cast<std::size_t>(fd) / descriptors;
    if (number >= rooms_.size() || rooms_[number] == nullptr) return {};
    return of(fd);
  }

 private:
  static constexpr std::size_t descriptors = 64;
  using pair = std::array<kept_watcher, 2>;
  using room = std::array<pair, descriptors>;

  pair& of(int fd) noexcept {
    const auto index = static_cast<std::size_t>(fd);
    return (*rooms_[index / descriptors])[index % descriptors];
  }

  std::vector<std::unique_ptr<room>> rooms_;
};

/// What an operation remembers of its watcher; `kept` is null if it is its own, which may be one of
/// another descriptor then: see exact_wait.hpp.
struct watch {
  ev_io own;
  kept_watcher* kept;
  std::optional<retry> pause;
};
static_assert(sizeof(watch) <= sizeof(operation::scratch));

inline watch& watch_of(operation& op) noexcept {
  return *std::launder(reinterpret_cast<watch*>(op.scratch));
}

inline ev_io& watcher_of(operation& op) noexcept {
  watch& its = watch_of(op);
  return its.kept != nullptr ? its.kept->io : its.own;
}

/// Whether it waits for something else than libev knows.
inline bool asks_more_than_library(const operation& op) noexcept {
  return only_waits(op) && (op.flags & ~(POLLIN | POLLOUT)) != 0;
}

}}}  // namespace motet::MOTET_ABI::detail
