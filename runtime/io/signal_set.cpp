// SPDX-License-Identifier: MIT
// See motet/io/signal_set.hpp. The handler writes the number of each signal, as one byte, to a
// pipe, unless that number is in the pipe already, so the pipe is never full. Source:
// signal-safety(7).
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <motet/base/errors.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/io/fd.hpp>
#include <motet/io/io.hpp>
#include <motet/io/signal_set.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/own_handler.hpp"
#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

constexpr std::size_t most_signals = 65;

/// What the handler touches.
struct signal_receiver {
  int pipe = -1;
  const pid_t process = ::getpid();
  std::atomic<std::uint64_t> in_pipe{0};  // a bit for each signal that is in the pipe
};

std::array<std::atomic<signal_receiver*>, most_signals> receivers;
std::array<struct sigaction, most_signals> previous;
std::atomic<int> handlers_at_work{0};
std::mutex mutex;  // guards `receivers`, from all but the handlers

constexpr std::uint64_t bit_of(int signal) noexcept {
  return std::uint64_t{1} << (signal - 1);
}

void on_signal_of_set(int signal) noexcept {
  const int saved_errno = errno;
  ++handlers_at_work;
  signal_receiver* receiver = receivers[static_cast<std::size_t>(signal)].load();
  // A forked child has the receivers for a moment, and shares the pipe.
  if (receiver != nullptr && receiver->process == ::getpid()) {
    const auto number = static_cast<std::uint8_t>(signal);
    if ((receiver->in_pipe.fetch_or(bit_of(signal)) & bit_of(signal)) == 0) {
      [[maybe_unused]] const ssize_t size = detail::sys::write(receiver->pipe, &number, 1);
    }
  }
  --handlers_at_work;
  errno = saved_errno;
}

/// Called in a forked child: the sets are its parent's.
void forget_all() noexcept {
  for (std::size_t signal = 1; signal < most_signals; ++signal) {
    if (receivers[signal].exchange(nullptr) == nullptr) continue;
    ::sigaction(static_cast<int>(signal), &previous[signal], nullptr);
  }
  handlers_at_work = 0;
}

void before_fork() noexcept {
  mutex.lock();
}
void after_fork() noexcept {
  mutex.unlock();
}
void after_fork_in_child() noexcept {
  forget_all();
  mutex.unlock();
}
[[maybe_unused]] const int registration =
    ::pthread_atfork(&before_fork, &after_fork, &after_fork_in_child);

bool can_be_waited_for(int signal) noexcept {
  for (const int number :
       {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    if (signal == number) return false;
  }
  return signal > 0 && signal <= SIGRTMAX && (signal < 32 || signal >= SIGRTMIN);
}

std::string name_of(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? "signal " + std::to_string(signal)
                                 : "SIG" + std::string(abbreviation);
}

}  // namespace

struct signal_set::state {
  state() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) detail::throw_errno(errno, "pipe2");
    read_end = fd(ends[0]);
    write_end = fd(ends[1]);
    receiver.pipe = write_end.get();
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { end(); }

  /// The state lasts until the last fiber has left next().
  void end() noexcept {
    if (made_in == detail::this_process()) {
      const std::lock_guard lock(mutex);
      for (const int number : std::exchange(numbers, {})) give_back(number);
      while (handlers_at_work.load() != 0) ::sched_yield();
    }
    read_end.close();
  }

  void catch_signal(int signal) {
    if (!can_be_waited_for(signal)) {
      throw std::invalid_argument("signal_set: " + name_of(signal) + " cannot be caught");
    }
    const std::lock_guard lock(mutex);
    auto& slot = receivers[static_cast<std::size_t>(signal)];
    if (slot.load() == &receiver) return;
    if (slot.load() != nullptr)
      throw std::logic_error("signal_set: another one has " + name_of(signal));
    numbers.reserve(numbers.size() + 1);
    struct sigaction action{};
    action.sa_handler = &on_signal_of_set;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    slot = &receiver;
    if (detail::install_own(signal, &action, &previous[static_cast<std::size_t>(signal)]) != 0) {
      const int error = errno;
      slot = nullptr;
      detail::throw_errno(error, "sigaction");
    }
    numbers.push_back(signal);
  }

  static void give_back(int signal) noexcept {
    ::sigaction(signal, &previous[static_cast<std::size_t>(signal)], nullptr);
    receivers[static_cast<std::size_t>(signal)] = nullptr;
  }

  const std::uint32_t made_in = detail::this_process();
  std::vector<int> numbers;
  signal_receiver receiver;
  fd write_end;
  fd read_end;
};

signal_set::signal_set(std::initializer_list<int> signals) : state_(std::make_shared<state>()) {
  for (const int number : signals) state_->catch_signal(number);
}

signal_set::signal_set(signal_set&&) noexcept = default;

signal_set& signal_set::operator=(signal_set&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->end();
  state_ = std::move(other.state_);
  return *this;
}

signal_set::~signal_set() {
  if (state_ != nullptr) state_->end();
}

int signal_set::next() {
  const std::shared_ptr<state> set_state = state_;  // the set may be moved or destroyed meanwhile
  if (set_state != nullptr && set_state->made_in != detail::this_process()) {
    throw std::logic_error("signal_set: used in a forked child");
  }
  std::byte number{};
  if (io::read(native_handle(), {&number, 1}) == 0) detail::throw_errno(EBADF, "read");
  const int signal = std::to_integer<int>(number);
  set_state->receiver.in_pipe.fetch_and(~bit_of(signal));
  return signal;
}

int signal_set::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->read_end.get();
}

}}  // namespace motet::MOTET_ABI
