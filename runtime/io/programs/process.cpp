// SPDX-License-Identifier: MIT
// See motet/io/process.hpp. A child's end makes its pidfd readable, which any backend can wait for;
// the child is reaped by that descriptor alone, so that nobody else's child ever is.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/io/io.hpp>
#include <motet/io/process.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/programs/child.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

constexpr int signal_offset = 128;  // what a shell adds to the number of a signal

/// The C library of some systems declares it for C alone. Source: pidfd_send_signal(2).
int signal_by(int pidfd, int number) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0));
}

}  // namespace

struct process::state {
  explicit state(const process_options& options) : group(options.new_group), grace(options.grace) {}

  void adopt(detail::spawned_child child) noexcept {
    id = child.id;
    pidfd = std::move(child.pidfd);
    input = std::move(child.pipes[STDIN_FILENO]);
    output = std::move(child.pipes[STDOUT_FILENO]);
    err = std::move(child.pipes[STDERR_FILENO]);
  }

  /// Returns: whether the program has ended; then it is no zombie any more, but for the leader of a
  /// group, whose number then stays the group's.
  bool look() {
    if (status.has_value()) return true;
    const siginfo_t info = ask(group ? WNOWAIT : 0);
    if (info.si_pid == 0) return false;
    const bool returned = info.si_code == CLD_EXITED;
    status = returned ? exit_status{info.si_status, 0, false}
                      : exit_status{signal_offset + info.si_status, info.si_status,
                                    info.si_code == CLD_DUMPED};
    return true;
  }

  siginfo_t ask(int options) const {
    siginfo_t info{};
    const auto number = static_cast<id_t>(pidfd.get());
    while (detail::sys::waitid(P_PIDFD, number, &info, WEXITED | WNOHANG | options) != 0) {
      if (errno != EINTR) detail::throw_errno(errno, "waitid");
    }
    return info;
  }

  bool send(int number) const {
    if (status.has_value()) return false;
    const int result = group ? ::kill(-id, number) : signal_by(pidfd.get(), number);
    if (result != 0 && errno != ESRCH) detail::throw_errno(errno, "signal");
    return result == 0;
  }

  /// Waits until the program has ended. A process that is destroyed meanwhile has seen the end.
  void await_news() const {
    try {
      io::wait_fd(pidfd.get(), POLLIN);
    } catch (const std::system_error&) {
      if (!status) throw;
    }
  }

  /// Waits on the descriptor, until `limit` has passed. Returns: whether it can be read from.
  bool ends_within(clock::duration limit) const {
    if (detail::self() != nullptr) {
      return move_on_after(limit, [&] { await_news(); });
    }
    using namespace std::chrono;
    constexpr hours longest(24);  // an int holds more milliseconds
    const auto end = steady_clock::now() + std::min<clock::duration>(limit, longest);
    for (;;) {
      pollfd look{pidfd.get(), POLLIN, 0};
      const auto remaining = ceil<milliseconds>(end - steady_clock::now()).count();
      const int count = detail::sys::poll(
          &look, 1, static_cast<int>(std::max<decltype(remaining)>(remaining, 0)));
      if (count >= 0 || errno != EINTR) return count > 0;
    }
  }

  exit_status await() {
    detail::here().deliver();
    while (!look()) await_news();
    return *status;
  }

  void end(clock::duration limit) {
    if (!look()) {
      send(SIGTERM);
      if (!ends_within(limit)) {
        send(SIGKILL);
        ends_within(clock::duration::max());
      }
      look();
    }
    if (group) end_rest();
  }

  /// The rest of a group is reached as long as its leader, though it has ended, is not reaped.
  void end_rest() {
    if (std::exchange(reaped, true)) return;
    ::kill(-id, SIGKILL);
    ask(0);
  }

  pid_t id = -1;
  fd pidfd;
  const bool group;
  const clock::duration grace;
  const std::uint32_t made_in = detail::this_process();
  std::optional<exit_status> status;
  bool reaped = false;  // of the leader of a group
  pipe input;
  pipe output;
  pipe err;
};

process process::start(const process_options& options) {
  detail::deliver_passed_limits();
  process result;
  const auto process_state = std::make_shared<state>(options);  // first: it may lack memory
  process_state->adopt(detail::spawn_child(options));
  result.state_ = process_state;
  return result;
}

process::process() noexcept = default;
process::process(process&&) noexcept = default;

process& process::operator=(process&& other) noexcept {
  if (this != &other) {
    const process old(std::move(*this));
    state_ = std::move(other.state_);
  }
  return *this;
}

process::~process() {
  if (state_ == nullptr || state_->made_in != detail::this_process()) return;
  state_->input.close();
  state_->output.close();
  state_->err.close();
  detail::thread_state* thread = detail::self();
  if (thread != nullptr) ++thread->running().shields;  // against terminate(), too
  try {
    state_->end(state_->grace);
  } catch (...) {  // it has been reaped by another call of this process, or memory lacks
  }
  if (thread != nullptr) --thread->running().shields;
  state_->pidfd.close();  // fibers in wait() leave it
}

process::state& process::started() const {
  if (state_ == nullptr) throw std::logic_error("process: no program has been started");
  if (state_->made_in != detail::this_process()) {
    throw std::logic_error("process: the program is a child of the parent process");
  }
  return *state_;
}

exit_status process::wait() {
  started();
  const std::shared_ptr<state> process_state = state_;  // it may be moved or destroyed meanwhile
  return process_state->await();
}

bool process::signal(int number) {
  state& process_state = started();
  return !process_state.look() && process_state.send(number);
}

exit_status process::terminate(detail::timespan grace) {
  started();
  const std::shared_ptr<state> process_state = state_;  // it may be moved or destroyed meanwhile
  process_state->end(grace.length);
  return process_state->await();
}

pipe& process::in() {
  return started().input;
}
pipe& process::out() {
  return started().output;
}
pipe& process::err() {
  return started().err;
}

int process::id() const {
  return started().id;
}

int process::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->pidfd.get();
}

}}  // namespace motet::MOTET_ABI
