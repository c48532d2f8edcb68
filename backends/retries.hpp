// SPDX-License-Identifier: MIT
// Operations that would wait although their descriptor is ready. A Unix socket is writable
// while the backlog of its listener is full; a socket is readable as long as its error queue is
// not empty. A wait for such a descriptor would end immediately, so the operation is retried
// after a pause, which grows each time: timers stay punctual, and the processor is not kept
// busy.
// Source: connect(2), EAGAIN; ip(7), IP_RECVERR.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <motet/detail/base/list.hpp>
#include <motet/runtime/backend.hpp>

#include "attempt.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct retry_tag;

/// An entry of `retries`, in the scratch of its operation.
struct retry : tagged_link<retry_tag> {
  operation* op = nullptr;
  clock::time_point due{};
};

class retries {
 public:
  using time_point = clock::time_point;

  bool empty() const noexcept { return count_ == 0; }

  /// Has `op` tried again after a pause, which depends on op.spurious_wakes.
  void add(retry& entry, operation& op) noexcept {
    const std::size_t pause = op.spurious_wakes - first_spurious_wakes;
    entry.op = &op;
    entry.due = std::chrono::steady_clock::now() + shortest_pause * (1 << pause);
    lines_[pause].push_back(entry);
    ++count_;
  }

  void remove(retry& entry) noexcept {
    list<retry, retry_tag>::remove(entry);
    --count_;
  }

  /// Returns: when the next operation is due; time_point::max() if there is none.
  time_point first_due() noexcept { return empty() ? time_point::max() : earliest(); }

  /// Calls `again(op)` for each operation that is due.
  template <typename Again>
  void take_due(Again again) noexcept {
    if (!empty()) [[unlikely]]
      take_due_now(again);
  }

 private:
  [[gnu::noinline]] time_point earliest() noexcept {
    time_point first = time_point::max();
    for (auto& line : lines_) {
      if (const retry* entry = line.front()) first = std::min(first, entry->due);
    }
    return first;
  }

  template <typename Again>
  [[gnu::noinline]] void take_due_now(Again again) noexcept {
    const time_point present = std::chrono::steady_clock::now();
    for (auto& line : lines_) {
      for (retry* entry = line.front(); entry != nullptr && entry->due <= present;
           entry = line.front()) {
        remove(*entry);
        again(*entry->op);
      }
    }
  }

  static constexpr auto shortest_pause = std::chrono::milliseconds(1);

  static constexpr std::size_t first_spurious_wakes = 2;

  /// A list for each length of a pause, up to 32 ms: so each list is in the order of time.
  std::array<list<retry, retry_tag>, most_spurious_wakes - first_spurious_wakes + 1> lines_;
  std::size_t count_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
