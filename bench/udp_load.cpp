// SPDX-License-Identifier: MIT
// Loads a UDP echo: some sockets, each with so many datagrams on their way all the time. A datagram
// that is lost is sent anew after 100 ms. Prints echoes/s.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <vector>

#include "bench_args.hpp"
#include "echo_load_parts.hpp"

namespace {

struct settings {
  double port = 0, sockets = 8, window = 16, seconds = 1, size = 64;
};

class load {
 public:
  explicit load(const settings& chosen)
      : window_(static_cast<unsigned>(chosen.window)),
        message_(static_cast<std::size_t>(chosen.size)) {
    const sockaddr_in where = bench::loopback(static_cast<in_port_t>(chosen.port));
    for (int left = static_cast<int>(chosen.sockets); left > 0; --left) {
      const int made = bench::check(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), "socket");
      bench::check(::connect(made, reinterpret_cast<const sockaddr*>(&where), sizeof where),
                   "connect");
      sockets_.push_back({made, POLLIN, 0});
    }
  }

  std::size_t run(std::int64_t length) {
    const std::int64_t end = bench::clock_ns() + length;
    std::size_t echoes = 0;
    for (pollfd& each : sockets_) send(each.fd, window_);
    while (bench::clock_ns() < end) {
      if (bench::check(::poll(sockets_.data(), sockets_.size(), 100), "poll") == 0) {
        for (pollfd& each : sockets_) send(each.fd, window_);
      }
      for (pollfd& each : sockets_) {
        if (each.revents == 0) continue;
        const unsigned came = receive(each.fd);
        echoes += came;
        send(each.fd, came);
      }
    }
    return echoes;
  }

 private:
  static constexpr unsigned most = 64;

  void send(int socket, unsigned count) {
    iovec vector{message_.data(), message_.size()};
    std::array<mmsghdr, most> headers{};
    for (unsigned i = 0; i < count; ++i) {
      headers[i].msg_hdr.msg_iov = &vector;
      headers[i].msg_hdr.msg_iovlen = 1;
    }
    if (count > 0) ::sendmmsg(socket, headers.data(), count, 0);
  }

  unsigned receive(int socket) {
    std::array<mmsghdr, most> headers{};
    std::array<std::array<char, 16>, most> bytes;  // the rest is of no interest
    std::array<iovec, most> vectors{};
    for (unsigned i = 0; i < most; ++i) {
      vectors[i] = {bytes[i].data(), bytes[i].size()};
      headers[i].msg_hdr.msg_iov = &vectors[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
    const int got = ::recvmmsg(socket, headers.data(), most, 0, nullptr);
    if (got < 0 && errno != EAGAIN) bench::check(got, "recvmmsg");
    return got < 0 ? 0 : static_cast<unsigned>(got);
  }

  unsigned window_;
  std::vector<char> message_;
  std::vector<pollfd> sockets_;
};

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  bench::parse_options(argc, argv,
                       {{"--port", &chosen.port, 1, 65535},
                        {"--sockets", &chosen.sockets, 1, 1000},
                        {"--window", &chosen.window, 1, 64},
                        {"--seconds", &chosen.seconds, 0.01, 3600},
                        {"--size", &chosen.size, 1, 65507}});
  load traffic(chosen);
  traffic.run(bench::to_ns(0.2));
  const std::size_t echoes = traffic.run(bench::to_ns(chosen.seconds));
  std::printf("%.0f\n", static_cast<double>(echoes) / chosen.seconds);
}
