// SPDX-License-Identifier: MIT
// The libev watchers of operations: watchers that are cached for streams, by descriptor and
// direction, and watchers that belong to one operation.
#pragma once

#include <ev.h>
#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/detail/base/list.hpp>
#include <motet/runtime/backend.hpp>
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

/// A watcher that stays started for its stream's descriptor from one operation to the next: to stop
/// it would cost a system call whenever a poll comes between. Idle while no operation uses it.
struct cached_watcher : tagged_link<idle_tag> {
  ev_io io{};
  std::uint64_t stream = 0;
};

/// The cached watchers of all descriptors, in pages for 64 descriptors each. A page is made when
/// one of its descriptors is first used, and never moved.
class watcher_cache {
 public:
  /// Returns: the cached watcher for the operation; null if it has no stream, or without memory.
  cached_watcher* slot_for(const operation& op) noexcept {
    if (op.stream == 0) return nullptr;
    const auto number = static_cast<std::size_t>(op.fd) / descriptors;
    try {
      if (number >= pages_.size()) pages_.resize(number + 1);
      if (pages_[number] == nullptr) pages_[number] = std::make_unique<page>();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return &of(op.fd)[events_of(op) == EV_WRITE ? 1 : 0];
  }

  /// Returns: the two cached watchers of a descriptor; empty if its page was never made.
  std::span<cached_watcher> find(int fd) noexcept {
    const auto number = static_cast<std::size_t>(fd) / descriptors;
    if (number >= pages_.size() || pages_[number] == nullptr) return {};
    return of(fd);
  }

 private:
  static constexpr std::size_t descriptors = 64;
  using pair = std::array<cached_watcher, 2>;
  using page = std::array<pair, descriptors>;

  pair& of(int fd) noexcept {
    const auto index = static_cast<std::size_t>(fd);
    return (*pages_[index / descriptors])[index % descriptors];
  }

  std::vector<std::unique_ptr<page>> pages_;
};

/// An operation's watcher, in the operation's scratch. If `stream_watcher` is null, it is
/// `private_watcher`, which may watch another descriptor than the operation's: see exact_wait.hpp.
struct operation_watcher {
  ev_io private_watcher;
  cached_watcher* stream_watcher;
  std::optional<retry> pause;
};
static_assert(sizeof(operation_watcher) <= sizeof(operation::scratch));

inline operation_watcher& operation_watcher_of(operation& op) noexcept {
  return *std::launder(reinterpret_cast<operation_watcher*>(op.scratch));
}

inline ev_io& watcher_of(operation& op) noexcept {
  operation_watcher& entry = operation_watcher_of(op);
  return entry.stream_watcher != nullptr ? entry.stream_watcher->io : entry.private_watcher;
}

/// Whether the operation waits for events that libev does not know.
inline bool asks_more_than_library(const operation& op) noexcept {
  return (op.flags & ~(POLLIN | POLLOUT)) != 0 && only_waits(op);
}

}}}  // namespace motet::MOTET_ABI::detail
