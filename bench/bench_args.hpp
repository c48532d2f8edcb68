// SPDX-License-Identifier: MIT
// What the stand-alone benchmark programs share: strict options, one way to fail, one listener.
// Nothing of motet is used here, so that the programs stay an independent yardstick.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace bench {

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}

// Passes a system call's result through; a negative one ends the program with errno's text.
inline int check(int result, const char* what) {
  if (result < 0) fail(std::string(what) + ": " + std::strerror(errno));
  return result;
}

struct option {
  std::string_view name;
  double* value;
  double lowest;
  double highest;  // below lowest: a flag, which takes no value and is set to 1
};

inline void parse_options(int argc, char** argv, std::initializer_list<option> options) {
  for (int i = 1; i < argc; ++i) {
    const option* found = nullptr;
    for (const option& each : options) {
      if (each.name == argv[i]) found = &each;
    }
    if (found == nullptr) fail(std::string("unknown option ") + argv[i]);
    if (found->highest < found->lowest) {
      *found->value = 1;
      continue;
    }
    const std::string_view text = i + 1 < argc ? argv[i + 1] : "";
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, *found->value);
    if (error != std::errc() || rest != end ||
        !(*found->value >= found->lowest && *found->value <= found->highest)) {
      std::fprintf(stderr, "%s needs a number from %g to %g\n", argv[i], found->lowest,
                   found->highest);
      std::exit(2);
    }
    ++i;
  }
}

// Raises the soft limit to the hard one and returns it.
inline rlim_t raise_file_limit() {
  rlimit limit{};
  check(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  return limit.rlim_cur;
}

inline sockaddr_in loopback(in_port_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline void set_flag(int fd, int level, int name) {
  const int on = 1;
  check(setsockopt(fd, level, name, &on, sizeof on), "setsockopt");
}

// Accepted sockets inherit TCP_NODELAY from the listener: set once here, never per connection.
inline int listen_on_loopback(in_port_t port, int type) {
  const int fd = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type, 0), "socket");
  set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
  set_flag(fd, IPPROTO_TCP, TCP_NODELAY);
  sockaddr_in address = loopback(port);
  socklen_t length = sizeof address;
  check(bind(fd, reinterpret_cast<sockaddr*>(&address), length), "bind");
  check(listen(fd, 4096), "listen");
  check(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), "getsockname");
  std::printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return fd;
}

// SIGTERM and SIGINT become a readable descriptor: no handler, no race with a blocking wait.
inline int stop_signal_fd() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  check(sigprocmask(SIG_BLOCK, &signals, nullptr), "sigprocmask");
  return check(signalfd(-1, &signals, SFD_CLOEXEC), "signalfd");
}

}  // namespace bench
