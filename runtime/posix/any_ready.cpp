// SPDX-License-Identifier: MIT
// See posix/any_ready.hpp. A few descriptors are waited for one by one, many by an epoll instance.
#include "posix/any_ready.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/system_calls.hpp"
#include "core/time/park_until.hpp"
#include "posix/c_state.hpp"
#include "posix/signal_watch.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Backends wait for these; errors and the end of a connection are reported in any case.
constexpr short awaitable = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;

short mask_of(const pollfd& entry) noexcept {
  const auto mask = static_cast<short>(entry.events & awaitable);
  const bool reads = (entry.events & (POLLRDNORM | POLLRDBAND)) != 0;
  const bool writes = (entry.events & (POLLWRNORM | POLLWRBAND)) != 0;
  const auto all = static_cast<short>(mask | (reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  return all != 0 ? all : short{POLLPRI};
}

/// The waits for a few descriptors, in the frame of the fiber.
class few_waits {
 public:
  static constexpr std::size_t most = 8;

  explicit few_waits(thread_state& home) noexcept : home_(home) {}
  few_waits(const few_waits&) = delete;
  few_waits& operator=(const few_waits&) = delete;

  /// A file on a disk is always ready; so one that poll(2) does not report is asked for nothing.
  /// One that another fiber is about to close is looked at again. Returns: whether the wait is over
  /// already.
  bool begin(const pollfd& entry) noexcept {
    if (entry.fd < 0 || is_file(entry.fd)) return false;
    if (home_.calls.being_closed(entry.fd)) return true;
    one& wait = waits_[count_++].emplace(*this, entry);
    wait.wait.fiber = &home_.running();
    wait.done = !home_.calls.begin(wait);
    return wait.done;
  }

  std::int32_t await(clock::time_point due, const signal_start& start) noexcept {
    const c_state state;
    const signal_watch watch(start, any_);
    if (start.passed()) return -EINTR;
    const wake_reason reason = park_until(home_, any_, due);
    if (reason == wake_reason::time) return watch.ended() ? -EINTR : -ETIME;
    return reason == wake_reason::interrupted ? -ECANCELED : 0;
  }

  /// Called before the frame is left. Whatever ends from now on resumes nobody but this call.
  /// Returns: whether a fiber closes one of the descriptors.
  bool end() noexcept {
    any_.claim(wake_reason::handed);
    bool closed = false;
    for (std::size_t i = 0; i < count_; ++i) {
      one& wait = *waits_[i];
      wait.won = nullptr;
      if (!wait.done) home_.calls.cancel_and_wait(wait);
      closed = closed || wait.closed;
    }
    return closed;
  }

 private:
  struct poll_of_one {
    explicit poll_of_one(const pollfd& entry) noexcept {
      poll.kind = verb::wait_fd;
      poll.fd = entry.fd;
      poll.flags = mask_of(entry);
    }
    operation poll;
  };
  struct one : poll_of_one, pending_operation {
    one(few_waits& all, const pollfd& entry) noexcept
        : poll_of_one(entry), pending_operation(poll, "poll"), owner(&all) {
      won = [](pending_operation& ended, thread_core& home) noexcept {
        home.resume(static_cast<one&>(ended).owner->any_, wake_reason::handed);
      };
    }
    few_waits* owner;
  };

  thread_state& home_;
  wait_record any_{"poll"};
  std::array<std::optional<one>, most> waits_;
  std::size_t count_ = 0;
};

/// The descriptor is closed only when this fiber has looked away.
std::int32_t await_one_of_few(thread_state& home, std::span<const pollfd> entries,
                              clock::time_point due, const signal_start& start) noexcept {
  few_waits waits(home);
  const bool over = std::any_of(entries.begin(), entries.end(),
                                [&](const pollfd& entry) { return waits.begin(entry); });
  const std::int32_t result = over ? 0 : waits.await(due, start);
  if (waits.end() || over) home.snooze();
  return result;
}

/// An epoll instance has each descriptor once, with the mask of all its entries.
std::uint32_t mask_of_all(std::span<const pollfd> entries, int fd) noexcept {
  std::uint32_t mask = 0;
  for (const pollfd& entry : entries) {
    if (entry.fd == fd) mask |= static_cast<std::uint16_t>(entry.events);
  }
  return mask;
}

/// A file cannot be added, and need not be.
bool add(int all, std::span<const pollfd> entries, const pollfd& entry) noexcept {
  epoll_event event{static_cast<std::uint16_t>(entry.events), {}};
  if (entry.fd < 0 || ::epoll_ctl(all, EPOLL_CTL_ADD, entry.fd, &event) == 0) return true;
  if (errno != EEXIST) return errno == EPERM || errno == EBADF;
  event.events = mask_of_all(entries, entry.fd);
  return ::epoll_ctl(all, EPOLL_CTL_MOD, entry.fd, &event) == 0;
}

/// Without an instance, or with descriptors that it cannot watch, the caller looks again soon.
std::int32_t await_one_of_many(thread_state& home, std::span<const pollfd> entries,
                               clock::time_point due, const signal_start& start) noexcept {
  const int all = ::epoll_create1(EPOLL_CLOEXEC);
  if (all < 0) return 0;
  const bool complete = std::all_of(entries.begin(), entries.end(),
                                    [&](const pollfd& entry) { return add(all, entries, entry); });
  const std::int32_t result = complete ? await_ready(home, all, POLLIN, "poll", start, due) : 0;
  sys::close(all);
  return result;
}

}  // namespace

std::int32_t await_any_ready(thread_state& home, std::span<const pollfd> entries,
                             clock::time_point due, const signal_start& start) noexcept {
  if (const int error = pending_error(home); error != 0) return -error;
  const std::int32_t result = entries.size() <= few_waits::most
                                  ? await_one_of_few(home, entries, due, start)
                                  : await_one_of_many(home, entries, due, start);
  return result == -ECANCELED ? -interruption_error(home) : result;
}

}}}  // namespace motet::MOTET_ABI::detail
