// SPDX-License-Identifier: MIT
// A backend by itself, without fibers: its operations, and descriptors of every kind for them.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <motet/io/fd.hpp>
#include <motet/runtime/backend.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "backends.hpp"
#include "backends/poll_backend.hpp"
#include "catch.hpp"
#include "core/file_call.hpp"
#include "support.hpp"

namespace testing {

using namespace motet;
using time_point = backend::time_point;

/// One operation, and how often it has come back.
struct trial {
  trial() { op.owner = this; }
  trial(verb kind, int fd, void* buffer = nullptr, std::size_t size = 0, int flags = 0) : trial() {
    op.kind = kind;
    op.fd = fd;
    op.buffer = buffer;
    op.length = static_cast<std::uint32_t>(size);
    op.flags = flags;
  }
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;

  operation op;
  int ends = 0;
};

/// A backend and its wake descriptor. Operations still in flight at its end are the test's fault.
class machine {
 public:
  explicit machine(const backend_options& sizes = {})
      : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const char* name = std::getenv("MOTET_BACKEND");
    if (name != nullptr && std::string_view(name) == "poll") {
      kernel_ = std::make_unique<poll_backend>();
    } else {
      kernel_ = detail::make_backend(name == nullptr ? "" : name, sizes);
    }
    kernel_->listen(wake_.get());
  }

  backend& kernel() { return *kernel_; }

  void submit(trial& attempt) {
    if (kernel_->submit(attempt.op)) ++attempt.ends;
  }
  void poll(time_point deadline) {
    completions list;
    kernel_->poll(deadline, list);
    while (operation* op = list.pop()) ++static_cast<trial*>(op->owner)->ends;
  }
  /// Looks a few times without waiting: what comes back wrongly would come now.
  void look() {
    for (int i = 0; i < 4; ++i) poll(time_point::min());
  }
  void wait_for(const trial& attempt) {
    while (attempt.ends == 0) poll(time_point::max());
  }
  /// Returns: the result of an operation that came back once.
  std::int32_t result_of(trial& attempt) {
    wait_for(attempt);
    look();
    REQUIRE(attempt.ends == 1);
    return attempt.op.result;
  }
  std::int32_t perform(trial& attempt) {
    submit(attempt);
    return result_of(attempt);
  }
  std::int32_t cancel(trial& attempt) {
    kernel_->cancel(attempt.op);
    return result_of(attempt);
  }
  void wake() const {
    const std::uint64_t value = 1;
    REQUIRE(::write(wake_.get(), &value, sizeof value) == sizeof value);
  }

 private:
  fd wake_;
  std::unique_ptr<backend> kernel_;
};

/// Returns: the result of an operation, which is done by a plain call if the backend leaves it to a
///          thread that may be blocked.
inline std::int32_t done_anyhow(machine& m, trial& attempt) {
  const std::int32_t result = m.perform(attempt);
  return result == operation::would_block_thread ? detail::call_and_block(attempt.op) : result;
}

/// `first` reads what `second` writes.
struct connected {
  connected(const char* name, bool is_socket, int with_mode)
      : kind(name), socket(is_socket), mode(with_mode), ends(make()) {}

  testing::descriptor_pair make() const {
    return socket ? make_socket_pair(mode) : make_pipe(mode);
  }

  const char* kind;
  bool socket;
  int mode;
  testing::descriptor_pair ends;
};

inline std::deque<connected> all_kinds() {
  std::deque<connected> kinds;
  kinds.emplace_back("a blocking pipe", false, 0);
  kinds.emplace_back("a non-blocking pipe", false, O_NONBLOCK);
  kinds.emplace_back("a blocking socket", true, 0);
  kinds.emplace_back("a non-blocking socket", true, SOCK_NONBLOCK);
  return kinds;
}

inline std::vector<verb> reading_verbs(bool socket) {
  std::vector<verb> verbs{verb::read, verb::readv};
  if (socket) verbs.push_back(verb::recv);
  return verbs;
}

inline std::vector<verb> writing_verbs(bool socket) {
  std::vector<verb> verbs{verb::write, verb::writev};
  if (socket) verbs.push_back(verb::send);
  return verbs;
}

/// A buffer that can be moved either way, by a plain verb or by a vectored one in two halves.
struct block {
  explicit block(std::size_t size, char fill = '.') : bytes(size, fill) {
    halves[0] = {bytes.data(), size / 2};
    halves[1] = {bytes.data() + size / 2, size - size / 2};
  }
  void describe(trial& attempt, verb kind, int fd) {
    const bool vectored = kind == verb::readv || kind == verb::writev;
    attempt.op.kind = kind;
    attempt.op.fd = fd;
    attempt.op.flags = kind == verb::send ? MSG_NOSIGNAL : 0;
    if (vectored) {
      attempt.op.vectors = halves.data();
      attempt.op.length = 2;
    } else {
      attempt.op.buffer = bytes.data();
      attempt.op.length = static_cast<std::uint32_t>(bytes.size());
    }
  }
  std::string bytes;
  std::array<iovec, 2> halves;
};

inline void put(int fd, std::string_view text) {
  REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

inline void describe_connect(trial& attempt, int fd, const sockaddr_in& address) {
  attempt.op.kind = verb::connect;
  attempt.op.fd = fd;
  attempt.op.address = const_cast<sockaddr*>(reinterpret_cast<const sockaddr*>(&address));
  attempt.op.length = sizeof address;
}

inline std::atomic<int> signals_seen{0};

/// Counts a signal for as long as it lives; system calls are not restarted.
class counted_signal {
 public:
  explicit counted_signal(int number) : number_(number) {
    signals_seen = 0;
    struct sigaction counting{};
    counting.sa_handler = [](int) { ++signals_seen; };
    ::sigaction(number, &counting, &old_action_);
  }
  counted_signal(const counted_signal&) = delete;
  counted_signal& operator=(const counted_signal&) = delete;
  ~counted_signal() { ::sigaction(number_, &old_action_, nullptr); }

 private:
  int number_;
  struct sigaction old_action_{};
};

}  // namespace testing
