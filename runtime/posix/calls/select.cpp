// SPDX-License-Identifier: MIT
// select(2) and pselect(2).
#include <poll.h>
#include <sys/select.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "posix/any_ready.hpp"
#include "posix/caller.hpp"
#include "posix/functions.hpp"
#include "posix/look.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

using three_sets = std::array<fd_set*, 3>;  // for reading, for writing, for exceptions

/// The sets as the caller has given them: a look leaves in them what is ready. They may be shorter
/// than an fd_set.
class wanted_sets {
 public:
  wanted_sets(int count, const three_sets& sets) noexcept
      : count_(count),
        size_((static_cast<std::size_t>(count) + NFDBITS - 1) / NFDBITS * sizeof(fd_mask)),
        sets_(sets) {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) std::memcpy(&wanted_[i], sets_[i], size_);
    }
  }

  void restore() noexcept {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) std::memcpy(sets_[i], &wanted_[i], size_);
    }
  }

  /// Returns: as pselect(2) without waiting.
  int look(const sigset_t* mask) noexcept {
    restore();
    constexpr timespec now{};
    return libc.pselect(count_, sets_[0], sets_[1], sets_[2], &now, mask);
  }

  /// Throws: std::bad_alloc.
  std::vector<pollfd> entries() const {
    constexpr std::array<short, 3> events{POLLIN, POLLOUT, POLLPRI};
    std::vector<pollfd> list;
    for (int fd = 0; fd < count_; ++fd) {
      pollfd entry{fd, 0, 0};
      for (std::size_t i = 0; i < sets_.size(); ++i) {
        if (sets_[i] != nullptr && FD_ISSET(fd, &wanted_[i]))
          entry.events = static_cast<short>(entry.events | events[i]);
      }
      if (entry.events != 0) list.push_back(entry);
    }
    return list;
  }

 private:
  int count_;
  std::size_t size_;  // in bytes, as the kernel reads and writes
  three_sets sets_;
  std::array<fd_set, 3> wanted_{};
};

template <typename Block>
int select_in_fiber(thread_state& home, int count, const three_sets& sets, clock::time_point due,
                    const sigset_t* mask, Block block) noexcept {
  wanted_sets wanted(count, sets);
  const auto block_with_sets = [&] {
    wanted.restore();
    return block();
  };
  try {
    const std::vector<pollfd> entries = wanted.entries();
    const auto look = [&] { return wanted.look(mask); };
    const auto await = [&](clock::time_point limit, const signal_start& start) {
      return await_any_ready(home, entries, limit, start);
    };
    if (mask != nullptr && must_not_switch(home)) return block();
    const int result = mask == nullptr ? look_until_ready(home, due, look, await, block_with_sets)
                                       : look_with_mask(home, due, look, await);
    if (result < 0) wanted.restore();
    return result;
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM);
  }
}

bool is_usual(int count) noexcept {
  return count >= 0 && count <= FD_SETSIZE;
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* limit) {
  const fiber_call call;
  const auto block = [&] { return libc.select(count, read, write, except, limit); };
  const bool can_wait = limit == nullptr || (limit->tv_sec >= 0 && limit->tv_usec >= 0 &&
                                             (limit->tv_sec | limit->tv_usec) != 0);
  if (!call || !is_usual(count) || !can_wait) return block();
  thread_state& home = call.home();
  const three_sets sets{read, write, except};
  if (limit == nullptr) return select_in_fiber(home, count, sets, no_limit, nullptr, block);
  constexpr long second = 1'000'000;
  const timespec span{limit->tv_sec + limit->tv_usec / second, limit->tv_usec % second * 1'000};
  const motet::clock::time_point due = due_after(home, &span);
  const int result = select_in_fiber(home, count, sets, due, nullptr, block);
  const timespec rest = span_until(home, due);  // select(2): Linux writes the time that remains
  *limit = {rest.tv_sec, rest.tv_nsec / 1'000};
  return result;
}

int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* limit,
            const sigset_t* mask) {
  const fiber_call call;
  const auto block = [&] { return libc.pselect(count, read, write, except, limit, mask); };
  if (!call || !is_usual(count) || !limit_allows_wait(limit)) return block();
  return select_in_fiber(call.home(), count, {read, write, except}, due_after(call.home(), limit),
                         mask, block);
}

}  // extern "C"
