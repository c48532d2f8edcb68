// SPDX-License-Identifier: MIT
// libev (4.33 or later): the call is tried first; if it would wait, the backend waits for its
// descriptor to be ready, and tries it again.
//
// Properties of libev, and their consequences:
// - It knows POLLIN and POLLOUT only.
// - It remembers which events it registered with epoll, and compares only for a newly
//   initialised watcher: so the watcher of an operation is initialised each time, and the
//   watcher that is cached for a stream is identified by the stream's number.
// - It aborts if it must register a watcher of a closed descriptor. It registers all watchers
//   again when an event arrives for a closed descriptor that has a duplicate. So a
//   descriptor's operations are ended, and forget() is called, before the descriptor is
//   closed.
// - It prints a line and aborts if it cannot allocate its tables: see libev_memory.hpp.
// - Its timers have the millisecond resolution of epoll_wait(2): a timerfd covers the last 2
//   ms before a deadline, so that no poll ends early, or much too late.
// - Its signal and child watchers are global to the process: none is used.
#include <ev.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <shared_mutex>
#include <system_error>
#include <utility>

#include "attempt.hpp"
#include "base/alarm.hpp"
#include "base/faults.hpp"
#include "base/remote_closings.hpp"
#include "base/system_calls.hpp"
#include "epoll_of.hpp"
#include "exact_wait.hpp"
#include "factories.hpp"
#include "kept_watchers.hpp"
#include "libev_memory.hpp"
#include "owned_descriptor.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using namespace std::chrono_literals;

constexpr auto coarse = 2ms;

/// epoll, in spite of the environment variable LIBEV_FLAGS; and the signal mask stays the
/// program's.
constexpr unsigned loop_flags = static_cast<unsigned>(EVBACKEND_EPOLL) |
                                static_cast<unsigned>(EVFLAG_NOENV) |
                                static_cast<unsigned>(EVFLAG_NOSIGMASK);

struct loop_closer {
  void operator()(struct ev_loop* loop) const noexcept { ev_loop_destroy(loop); }
};

class libev_backend final : public backend {
 public:
  libev_backend()
      : loop_(faults::next("ev_loop_new") != 0 || !memory_.suffices_for(0)
                  ? nullptr
                  : ev_loop_new(loop_flags)),
        timer_fd_(faults::call("timerfd_create", ::timerfd_create, CLOCK_MONOTONIC,
                               TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (loop_ == nullptr || timer_fd_.number < 0) refuse();
    ev_set_userdata(loop_.get(), this);
    ev_io_init(&fine_, &on_fine_timer, timer_fd_.number, EV_READ);
    ev_io_start(loop_.get(), &fine_);
    ev_timer_init(&coarse_, &on_coarse_timer, 0., 0.);
  }

  [[noreturn]] static void refuse() {
    throw std::system_error(errno != 0 ? errno : ENOMEM, std::system_category(), "libev");
  }

  std::string_view name() const noexcept override { return "libev"; }
  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }

  void listen(int wake_descriptor) override {
    ev_io_init(&wake_, &on_wake, wake_descriptor, EV_READ);
    ev_io_start(loop_.get(), &wake_);
  }

  bool submit(operation& op) noexcept override {
    const bool expects_wait = op.expects_wait && op.stream != 0;
    if (!expects_wait && attempt(op)) return true;
    return !start(op);
  }

  void cancel(operation& op) noexcept override {
    if (op.cancelling || watcher_of(op).data != &op) return;
    if (operation_watcher_of(op).pause) retries_.remove(*operation_watcher_of(op).pause);
    op.cancelling = true;
    op.result = -ECANCELED;
    finish(op);
  }

  void forget(int fd) noexcept override {
    for (cached_watcher& watcher : watchers_.find(fd)) {
      ev_io_stop(loop_.get(), &watcher.io);
      watcher.unlink();
      watcher.stream = 0;
    }
  }

  void poll(time_point deadline, completions& ended_operations) override {
    const bool wait = results_.empty() && deadline != time_point::min();
    const auto guard = settle_idle(wait);
    deadline_ = deadline;
    news_ = false;
    do {
      again_ = false;
      const time_point limit = std::min(deadline, retries_.first_due());
      if (wait && limit != time_point::max()) set_alarm(limit);
      ev_run(loop_.get(), wait ? EVRUN_ONCE : EVRUN_NOWAIT);
      ev_timer_stop(loop_.get(), &coarse_);
      try_again();
    } while (wait && again_ && !news_ && results_.empty());
    ended_operations.append(results_);
  }

  int wait_descriptor(time_point& due) noexcept override {
    stop_idle();
    ev_run(loop_.get(), EVRUN_NOWAIT);  // tells epoll of the watchers
    if (epoll_ < 0) epoll_ = epoll_of(timer_fd_.number);
    due = results_.empty() ? retries_.first_due() : time_point::min();
    return epoll_;
  }

 private:
  /// Starts the operation's watcher.
  /// Returns: false, with op.result set, if that was refused.
  bool start(operation& op) noexcept {
    if (!memory_.suffices_for(op.fd)) [[unlikely]] {
      op.result = -ENOMEM;
      return false;
    }
    operation_watcher& entry = *::new (static_cast<void*>(op.scratch)) operation_watcher;
    entry.stream_watcher = watchers_.slot_for(op);
    if (asks_more_than_library(op)) [[unlikely]]
      return start_exactly(op, entry.private_watcher);
    ev_io& watcher = watcher_of(op);
    if (entry.stream_watcher != nullptr) entry.stream_watcher->unlink();
    if (entry.stream_watcher == nullptr || entry.stream_watcher->stream != op.stream) {
      if (entry.stream_watcher != nullptr) {  // the descriptor was another stream's before
        ev_io_stop(loop_.get(), &watcher);
        entry.stream_watcher->stream = op.stream;
      }
      ev_io_init(&watcher, &on_ready, op.fd, events_of(op));
    }
    watcher.data = &op;
    ev_io_start(loop_.get(), &watcher);
    return true;
  }

  [[gnu::noinline]] bool start_exactly(operation& op, ev_io& watcher) noexcept {
    const int exact = make_exact_wait(op);
    if (exact < 0) {
      op.result = exact;
      return false;
    }
    ev_io_init(&watcher, &on_ready, exact, EV_READ);
    watcher.data = &op;
    ev_io_start(loop_.get(), &watcher);
    return true;
  }

  void finish(operation& op) noexcept {
    ev_io& watcher = watcher_of(op);
    operation_watcher& entry = operation_watcher_of(op);
    watcher.data = nullptr;
    if (entry.stream_watcher != nullptr) {
      idle_.push_back(*entry.stream_watcher);
    } else {
      ev_io_stop(loop_.get(), &watcher);
      if (watcher.fd != op.fd) [[unlikely]]
        sys::close(watcher.fd);
    }
    results_.push(op);
  }

  [[gnu::noinline]] void pause(operation& op) noexcept {
    ev_io_stop(loop_.get(), &watcher_of(op));
    retries_.add(operation_watcher_of(op).pause.emplace(), op);
  }

  void try_again() noexcept {
    retries_.take_due([this](operation& op) {
      operation_watcher_of(op).pause.reset();
      if (attempt(op)) {
        finish(op);
      } else {
        ev_io_start(loop_.get(), &watcher_of(op));
      }
    });
  }

  void stop_idle() noexcept {
    while (cached_watcher* idle = idle_.pop_front()) ev_io_stop(loop_.get(), &idle->io);
  }

  /// Stops the idle watchers before a poll that waits. A poll that does not wait leaves them
  /// started; while it holds the lock that is returned, no other thread closes their descriptors.
  std::shared_lock<std::shared_mutex> settle_idle(bool wait) {
    if (wait) stop_idle();
    if (idle_.empty()) return {};
    std::shared_lock guard(remote_closings::lock);
    const std::uint64_t closings = remote_closings::count.load(std::memory_order_relaxed);
    if (std::exchange(closings_seen_, closings) != closings) stop_idle();
    return guard;
  }

  static libev_backend& owner_of(struct ev_loop* loop) noexcept {
    return *static_cast<libev_backend*>(ev_userdata(loop));
  }

  static void on_ready(struct ev_loop* loop, ev_io* watcher, int) noexcept {
    auto* op = static_cast<operation*>(watcher->data);
    libev_backend& self = owner_of(loop);
    if (op != nullptr && attempt(*op)) {
      self.finish(*op);
      return;
    }
    self.again_ = true;
    if (op == nullptr) {  // an idle watcher
      ev_io_stop(loop, watcher);
    } else if (waits_in_vain(*op)) {
      self.pause(*op);
    }
  }

  static void drain(int fd) noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = sys::read(fd, &count, sizeof count);
  }

  static void on_wake(struct ev_loop* loop, ev_io* watcher, int) noexcept {
    drain(watcher->fd);
    owner_of(loop).news_ = true;
  }

  static void on_fine_timer(struct ev_loop* loop, ev_io* watcher, int) noexcept {
    drain(watcher->fd);
    libev_backend& self = owner_of(loop);
    (self.fine_deadline_ == self.deadline_ ? self.news_ : self.again_) = true;
    self.fine_deadline_ = time_point::max();
  }

  static void on_coarse_timer(struct ev_loop* loop, ev_timer*, int) noexcept {
    owner_of(loop).again_ = true;
  }

  void set_alarm(time_point deadline) noexcept {
    const time_point present = now();
    const auto remaining = deadline > present ? deadline - present : clock::duration::zero();
    if (remaining > coarse) {
      ev_now_update(loop_.get());
      const std::chrono::duration<double> seconds = remaining - coarse;
      ev_timer_set(&coarse_, seconds.count(), 0.);
      ev_timer_start(loop_.get(), &coarse_);
    } else if (deadline != fine_deadline_) {
      set_fine_timer(deadline);
    }
  }

  void set_fine_timer(time_point deadline) noexcept {
    detail::set_alarm(timer_fd_.number, deadline);
    fine_deadline_ = deadline;
  }

  libev_memory memory_;  // before the loop, which grows in it
  std::unique_ptr<struct ev_loop, loop_closer> loop_;
  owned_descriptor timer_fd_;
  ev_io wake_{};
  ev_io fine_{};
  ev_timer coarse_{};
  time_point deadline_ = time_point::max();  // of this poll
  time_point fine_deadline_ = time_point::max();
  bool again_ = false;  // an event that does not end the poll: the loop must run again
  bool news_ = false;   // a wake or the deadline, which end the poll
  completions results_;
  retries retries_;
  watcher_cache watchers_;
  list<cached_watcher, idle_tag> idle_;
  std::uint64_t closings_seen_ = 0;
  int epoll_ = -1;  // libev's, once it was asked for
};

}  // namespace

std::unique_ptr<backend> make_libev_backend(const backend_options&) {
  return std::make_unique<libev_backend>();
}

}}}  // namespace motet::MOTET_ABI::detail
