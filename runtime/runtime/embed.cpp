// SPDX-License-Identifier: MIT
// See motet/runtime/embed.hpp. An epoll instance stands for the wait that the foreign loop makes in
// place of the thread: it watches the backend's descriptor, the mailbox's, and a timer.
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <motet/base/errors.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/fibers/local.hpp>
#include <motet/io/fd.hpp>
#include <motet/runtime/embed.hpp>
#include <optional>
#include <stdexcept>

#include "base/alarm.hpp"
#include "base/flag_guard.hpp"
#include "base/system_calls.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

using namespace std::chrono_literals;
using instant = clock::time_point;

/// How long a loop's other sources wait at the most, unless a fiber does not switch.
constexpr auto time_slice = 500us;

class outside_wait {
 public:
  explicit outside_wait(detail::thread_state& home)
      : home_(home),
        made_in_(detail::this_process()),
        epoll_(made(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        timer_(made(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd")) {
    instant due;
    errno = 0;
    const int backend = wait_descriptor(due);
    if (backend < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
      detail::throw_errno(errno, "eventfd");
    }
    if (backend < 0) {
      throw std::logic_error("poll_descriptor(): no foreign loop can wait for the backend " +
                             std::string(home.kernel().name()));
    }
    for (const int descriptor : {backend, home.mail().wake_descriptor(), timer_.get()})
      add(descriptor);
  }

  outside_wait(const outside_wait&) = delete;
  outside_wait& operator=(const outside_wait&) = delete;
  ~outside_wait() {
    if (of_this_process()) home_.wakes_go_to(-1);
  }

  int descriptor() const noexcept { return epoll_.get(); }
  bool of_this_process() const noexcept { return made_in_ == detail::this_process(); }

  void run_fibers() {
    home_.wakes_go_to(-1);
    home_.mail().awake();
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size =
        detail::sys::read(home_.mail().wake_descriptor(), &count, sizeof count);
    const instant end = clock::now() + time_slice;
    do {
      {
        const detail::flag_guard look(home_.looks_aside);
        home_.poll(false);
      }
      home_.snooze();
    } while (home_.any_runnable() && clock::now() < end);
  }

  /// Until the next run_fibers() other threads wake this one as if it slept, and a fiber that
  /// becomes runnable sets off the timer.
  void begin() noexcept {
    instant due = instant::min();
    if (!home_.any_runnable() && home_.mail().announce_sleep(false)) {
      const bool told = wait_descriptor(due) >= 0;
      if (!told) due = std::min(due, clock::now() + time_slice);
      // Perhaps it has taken notice of what wakes the thread.
      if (home_.mail().filled()) due = instant::min();
      if (!home_.time.empty()) due = std::min(due, home_.time.end_of_sleep(due));
    }
    detail::set_alarm(timer_.get(), due);
    home_.wakes_go_to(timer_.get());
  }

 private:
  int wait_descriptor(instant& due) noexcept {
    const detail::flag_guard in_backend(home_.schedule.in_backend);
    return home_.kernel().wait_descriptor(due);
  }

  static int made(int descriptor, const char* call) {
    if (descriptor < 0) detail::throw_errno(errno, call);
    return descriptor;
  }

  void add(int number) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, number, &event) != 0) {
      detail::throw_errno(errno, "epoll_ctl", number);
    }
  }

  detail::thread_state& home_;
  const std::uint32_t made_in_;
  fd epoll_;
  fd timer_;
};

outside_wait& of_main_fiber() {
  static const fiber_local<std::optional<outside_wait>> waits;
  detail::thread_state& home = detail::here();
  if (&home.running() != &home.main_fiber()) {
    throw std::logic_error("run_ready(): called outside of the thread's main fiber");
  }
  std::optional<outside_wait>& slot = waits.get();
  if (!slot || !slot->of_this_process()) slot.emplace(home);
  return *slot;
}

}  // namespace

int poll_descriptor() {
  outside_wait& waits = of_main_fiber();
  waits.begin();
  return waits.descriptor();
}

void run_ready() {
  outside_wait& waits = of_main_fiber();
  waits.run_fibers();
  waits.begin();
  detail::here().deliver();
}

}}  // namespace motet::MOTET_ABI
