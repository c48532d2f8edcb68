// SPDX-License-Identifier: MIT
// The bare limit of an HTTP server: single-threaded, level-triggered epoll that looks for the ends
// of requests and sends an answer made beforehand for each. It understands nothing, and refuses
// nothing.
//
// usage: raw_epoll_http --port PORT [--bytes N]
#include <sys/epoll.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../bench_args.hpp"

namespace {

class http_server {
 public:
  http_server(in_port_t port, std::size_t bytes)
      : answer_("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
                std::string(bytes, 'x')),
        stop_(bench::stop_signal_fd()),
        listener_(bench::listen_on_loopback(port, SOCK_NONBLOCK)) {
    add(stop_);
    add(listener_);
  }

  void run() {
    std::array<epoll_event, 512> events;
    for (;;) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno == EINTR) continue;
      bench::check(count, "epoll_wait");
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == stop_) return;
        fd == listener_ ? accept_all() : serve(fd);
      }
    }
  }

 private:
  void add(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    bench::check(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }

  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0 && errno == EAGAIN) return;
      add(bench::check(fd, "accept4"));
    }
  }

  /// The load sends whole requests, and reads all answers: a rest on either way need not be kept.
  void serve(int fd) {
    const ssize_t got = recv(fd, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) {
      close(fd);
      return;
    }
    std::string_view text(buffer_.data(), static_cast<std::size_t>(got));
    answers_.clear();
    for (std::size_t end = text.find("\r\n\r\n"); end != text.npos; end = text.find("\r\n\r\n")) {
      answers_ += answer_;
      text.remove_prefix(end + 4);
    }
    if (send(fd, answers_.data(), answers_.size(), MSG_NOSIGNAL) < 0) close(fd);
  }

  const std::string answer_;
  int epoll_ = bench::check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  int stop_;
  int listener_;
  std::string answers_;
  std::array<char, 16 * 1024> buffer_;
};

}  // namespace

int main(int count, char** words) {
  const bool sized = count == 5 && std::strcmp(words[3], "--bytes") == 0;
  const std::size_t bytes = sized ? std::stoul(words[4]) : 13;
  http_server(static_cast<in_port_t>(std::stoi(count > 2 ? words[2] : "0")), bytes).run();
}
