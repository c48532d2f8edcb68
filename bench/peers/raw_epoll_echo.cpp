// SPDX-License-Identifier: MIT
// The bare limit of epoll: a single-threaded, level-triggered TCP echo server with nothing between
// it and the system calls. What motet costs is measured against this.
#include <sys/epoll.h>

#include <array>
#include <vector>

#include "../bench_args.hpp"

namespace {

class echo_server {
 public:
  explicit echo_server(in_port_t port)
      : stop_(bench::stop_signal_fd()), listener_(bench::listen_on_loopback(port, SOCK_NONBLOCK)) {
    control(EPOLL_CTL_ADD, stop_, EPOLLIN);
    control(EPOLL_CTL_ADD, listener_, EPOLLIN);
  }

  void run() {
    std::array<epoll_event, 512> events;
    for (;;) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno == EINTR) continue;
      bench::check(count, "epoll_wait");
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.fd == stop_) return;
        if (event.data.fd == listener_) {
          accept_all();
        } else if (rest_[static_cast<std::size_t>(event.data.fd)].empty()) {
          echo(event.data.fd);
        } else {
          send_rest(event.data.fd);
        }
      }
    }
  }

 private:
  void control(int operation, int fd, std::uint32_t interest) {
    epoll_event event{};
    event.events = interest;
    event.data.fd = fd;
    bench::check(epoll_ctl(epoll_, operation, fd, &event), "epoll_ctl");
  }

  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0 && errno == EAGAIN) return;
      if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
      const auto slot = static_cast<std::size_t>(bench::check(fd, "accept4"));
      if (slot >= rest_.size()) rest_.resize(slot + 1);
      control(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
  }

  void echo(int fd) {
    const ssize_t got = recv(fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return drop(fd);
    const auto size = static_cast<std::size_t>(got);
    const ssize_t sent = send(fd, buffer_.data(), size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return drop(fd);
    if (sent == got) return;
    const auto done = static_cast<std::size_t>(sent < 0 ? 0 : sent);
    rest_[static_cast<std::size_t>(fd)].assign(buffer_.data() + done, size - done);
    control(EPOLL_CTL_MOD, fd, EPOLLOUT);  // not EPOLLIN: a slow reader holds back its own writes
  }

  void send_rest(int fd) {
    std::string& rest = rest_[static_cast<std::size_t>(fd)];
    const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return drop(fd);
    rest.erase(0, static_cast<std::size_t>(sent));
    if (rest.empty()) control(EPOLL_CTL_MOD, fd, EPOLLIN);
  }

  void drop(int fd) {
    rest_[static_cast<std::size_t>(fd)].clear();
    close(fd);
  }

  int epoll_ = bench::check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  int stop_;
  int listener_;
  std::array<char, 16 * 1024> buffer_;
  std::vector<std::string> rest_;  // by descriptor: what was read but could not be sent yet
};

}  // namespace

int main(int argc, char** argv) {
  double port = 0;
  bench::parse_options(argc, argv, {{"--port", &port, 0, 65535}});
  bench::raise_file_limit();
  echo_server(static_cast<in_port_t>(port)).run();
}
