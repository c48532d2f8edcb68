// SPDX-License-Identifier: MIT
// The same calls on every kind of descriptor in every state of it. Each case runs on a thread,
// where the C library serves it, and in a fiber, and both must agree about results, errors, data,
// signals, the mode of the descriptor, and what is left in it.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <motet/posix.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "posix/journal.hpp"
#include "posix/pair.hpp"

namespace testing {

inline const std::array every_kind{"stream", "datagram",  "seqpacket", "tcp",
                                   "udp",    "pipe",      "terminal",  "event",
                                   "file",   "directory", "null",      "epoll"};

/// A number for an eventfd, and eight bytes for the others.
inline constexpr std::array<char, 8> payload{1, 0, 0, 0, 0, 0, 0, 0};
inline constexpr auto short_limit = std::chrono::milliseconds(1);

struct named_call {
  const char* name;
  std::function<void(journal&, int fd)> make;
  bool never_waits = false;
};

/// Puts the ends into a state.
/// Returns: whether their kind has it.
using preparation = std::function<bool(pair&)>;

inline bool set_nonblocking(int fd, bool enable) {
  const int mode = ::fcntl(fd, F_GETFL);
  return ::fcntl(fd, F_SETFL, enable ? mode | O_NONBLOCK : mode & ~O_NONBLOCK) == 0;
}

inline bool set_limit(int fd, int option) {
  const timeval span{0, std::chrono::microseconds(short_limit).count()};
  return ::setsockopt(fd, SOL_SOCKET, option, &span, sizeof span) == 0;
}

inline bool is_ready(int fd, short events) {
  pollfd look{fd, events, 0};
  return ::poll(&look, 1, 0) > 0;
}

inline bool put_payload(const pair& ends) {
  return ::write(ends.writer.get(), payload.data(), payload.size()) > 0;
}

/// A terminal passes data on a little later.
inline bool put_and_await(const pair& ends) {
  if (!put_payload(ends)) return false;
  for (int i = 0; i < 1'000 && !is_ready(ends.reader.get(), POLLIN); ++i) ::usleep(1'000);
  return true;
}

/// Returns: whether the other end has no room any more. A terminal makes room by itself, and a file
///          and a datagram of UDP need none.
inline bool fill(const pair& ends) {
  const int fd = ends.writer.get();
  if (::isatty(fd) == 1) return false;
  const int least = 4'096;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  ::setsockopt(ends.reader.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  ::fcntl(fd, F_SETPIPE_SZ, least);
  const std::vector<char> much(1'024, 'x');
  set_nonblocking(fd, true);
  for (const std::size_t size : {much.size(), std::size_t{1}}) {
    for (int i = 0; i < 300 && ::write(fd, much.data(), size) > 0; ++i) {
    }
  }
  set_nonblocking(fd, false);
  return !is_ready(fd, POLLOUT);
}

/// A connection is reset if what has arrived is not read when it is closed.
inline bool reset(pair& ends) {
  if (::send(ends.reader.get(), "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return false;
  ends.writer.close();
  return true;
}

inline const std::map<std::string, preparation> reading_states{
    {"with data", put_and_await},
    {"empty, non-blocking", [](pair& ends) { return set_nonblocking(ends.reader.get(), true); }},
    {"until data comes", [](pair& ends) { return !is_ready(ends.reader.get(), POLLIN); }},
    {"empty, with a limit", [](pair& ends) { return set_limit(ends.reader.get(), SO_RCVTIMEO); }},
    {"closed by the peer",
     [](pair& ends) { return put_and_await(ends) && (ends.writer.close(), true); }},
    {"closed by the peer, empty", [](pair& ends) { return ends.writer.close(), true; }},
    {"reset by the peer", reset},
    {"shut for reading", [](pair& ends) { return ::shutdown(ends.reader.get(), SHUT_RD) == 0; }},
};

inline void drain(pair& ends) {
  std::array<char, 4'096> bytes{};
  set_nonblocking(ends.reader.get(), true);
  while (::read(ends.reader.get(), bytes.data(), bytes.size()) > 0) {
  }
}

inline const std::map<std::string, preparation> writing_states{
    {"with room", [](pair&) { return true; }},
    {"with room, non-blocking",
     [](pair& ends) { return set_nonblocking(ends.writer.get(), true); }},
    {"full, non-blocking",
     [](pair& ends) { return fill(ends) && set_nonblocking(ends.writer.get(), true); }},
    {"full, with a limit",
     [](pair& ends) { return fill(ends) && set_limit(ends.writer.get(), SO_SNDTIMEO); }},
    {"until there is room", [](pair& ends) { return fill(ends); }},
    {"without a reader", [](pair& ends) { return ends.reader.close(), true; }},
    {"shut for writing", [](pair& ends) { return ::shutdown(ends.writer.get(), SHUT_WR) == 0; }},
};

inline std::atomic<int> broken_pipes{0};

/// Counts SIGPIPE while it lives.
class pipe_counter {
 public:
  pipe_counter() {
    struct sigaction action{};
    action.sa_handler = [](int) { ++broken_pipes; };
    ::sigaction(SIGPIPE, &action, &before_);
  }
  pipe_counter(const pipe_counter&) = delete;
  pipe_counter& operator=(const pipe_counter&) = delete;
  ~pipe_counter() { ::sigaction(SIGPIPE, &before_, nullptr); }

 private:
  struct sigaction before_{};
};

struct case_table {
  /// The states in which a call is made, by their names; in "until ..." one that would wait forever
  /// is ended by `event` on another thread.
  std::map<std::string, preparation> states;
  std::vector<named_call> calls;
  std::function<int(const pair&)> subject;  // the end that makes the calls
  short events;  // for which that end would wait; 0 if every call has a limit of its own
  std::function<void(pair&)> event;
};

/// Makes a call that `event` ends, if it waits.
inline void make_with_event(journal& log, const case_table& table, const named_call& call,
                            pair& ends) {
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    table.event(ends);
  });
  call.make(log, table.subject(ends));
  other.join();
}

inline bool depends_on_time(const std::string& state) {
  return state.starts_with("until") || state.find("limit") != std::string::npos;
}

inline void make_case(journal& log, const case_table& table, const std::string& state,
                      const named_call& call, pair& ends) {
  const int fd = table.subject(ends);
  const int pipes_before = broken_pipes;
  const bool ends_by_itself = table.events == 0 || state.find("limit") != std::string::npos ||
                              state.find("non-blocking") != std::string::npos ||
                              is_ready(fd, table.events);
  const auto begin = std::chrono::steady_clock::now();
  if (state.starts_with("until")) {
    make_with_event(log, table, call, ends);
  } else if (ends_by_itself) {
    call.make(log, fd);
  } else {
    log.text("result", "waits forever");
  }
  const bool was_late = log.lines().back().ends_with("EAGAIN");
  if (was_late && state.find("limit") != std::string::npos &&
      std::chrono::steady_clock::now() - begin < short_limit)
    log.text("limit", "too short");
  int unread = -1;
  const bool reads = table.events == POLLIN && ::isatty(fd) == 0;
  if (reads && ::ioctl(fd, FIONREAD, &unread) == 0) log.number("unread", unread);
  log.number("SIGPIPE", broken_pipes - pipes_before);
  log.mode(fd);
}

inline void make_every_case(journal& log, const case_table& table) {
  for (const std::string kind : every_kind) {
    for (const auto& [state, prepare] : table.states) {
      for (const named_call& call : table.calls) {
        if (call.never_waits && depends_on_time(state)) continue;
        pair ends(kind);
        if (!prepare(ends)) continue;
        log.text("case", std::string(call.name) + " on " + kind + ", " + state);
        make_case(log, table, state, call, ends);
      }
    }
  }
}

inline std::vector<std::vector<std::string>> split_cases(const std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> parts;
  for (const std::string& line : lines) {
    if (line.starts_with("case: ")) parts.emplace_back();
    parts.back().push_back(line);
  }
  return parts;
}

/// Returns: how many cases there are.
inline std::size_t compare_every_case(const case_table& table) {
  const pipe_counter counter;
  const auto calls = [&](journal& log) { make_every_case(log, table); };
  std::size_t others = 0;
  const auto expected = split_cases(on_thread(calls));
  const auto found = split_cases(in_fiber(calls, others));
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == expected[i]);
  CHECK(others > 10);
  return expected.size();
}

}  // namespace testing
