// SPDX-License-Identifier: MIT
// The bare limits of a UDP echo on one thread: recvmmsg(2) and sendmmsg(2) in a loop, or a ring in
// which each slot receives, and sends what it has received and receives again as a linked pair.
// Run: raw_udp_echo mmsg|ring; prints its address.
#include <arpa/inet.h>
#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "../bench_args.hpp"

namespace {

constexpr unsigned slots = 64;
constexpr std::size_t largest = 65'507;

struct header {
  iovec vector{};
  msghdr message{};

  void set(char* bytes, std::size_t size, sockaddr_in& peer) {
    vector = {bytes, size};
    message = {};
    message.msg_name = &peer;
    message.msg_namelen = sizeof peer;
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
  }
};

struct slot {
  std::array<char, largest> bytes;
  sockaddr_in from{};
  header in;
  header out;
};

std::array<slot, slots> all;

int open_socket() {
  const int made = bench::check(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bench::check(::bind(made, reinterpret_cast<sockaddr*>(&where), sizeof where), "bind");
  socklen_t size = sizeof where;
  bench::check(::getsockname(made, reinterpret_cast<sockaddr*>(&where), &size), "getsockname");
  std::printf("listening on 127.0.0.1:%d\n", ntohs(where.sin_port));
  std::fflush(stdout);
  return made;
}

void echo_many(int socket, int stop) {
  std::array<mmsghdr, slots> headers{};
  std::array<pollfd, 2> ready{{{socket, POLLIN, 0}, {stop, POLLIN, 0}}};
  for (;;) {
    for (unsigned i = 0; i < slots; ++i) {
      all[i].in.set(all[i].bytes.data(), largest, all[i].from);
      headers[i].msg_hdr = all[i].in.message;
    }
    const int got = ::recvmmsg(socket, headers.data(), slots, MSG_DONTWAIT, nullptr);
    if (got < 0) {
      if (errno != EAGAIN) bench::check(got, "recvmmsg");
      bench::check(::poll(ready.data(), ready.size(), -1), "poll");
      if (ready[1].revents != 0) return;
      continue;
    }
    for (int i = 0; i < got; ++i) {
      all[static_cast<unsigned>(i)].in.vector.iov_len = headers[static_cast<unsigned>(i)].msg_len;
    }
    for (int sent = 0; sent < got;) {
      sent += bench::check(
          ::sendmmsg(socket, headers.data() + sent, static_cast<unsigned>(got - sent), 0),
          "sendmmsg");
    }
  }
}

class ring_echo {
 public:
  ring_echo(int socket, int stop) : socket_(socket) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    if (io_uring_queue_init_params(2 * slots + 1, &ring_, &params) < 0) bench::fail("no ring");
    io_uring_register_ring_fd(&ring_);
    io_uring_sqe* asked = io_uring_get_sqe(&ring_);
    io_uring_prep_poll_add(asked, stop, POLLIN);
    asked->user_data = stop_tag;
    for (unsigned i = 0; i < slots; ++i) receive(i);
  }

  void run() {
    for (;;) {
      if (io_uring_submit_and_wait(&ring_, 1) < 0) bench::fail("io_uring_submit_and_wait");
      unsigned head = 0;
      unsigned done = 0;
      io_uring_cqe* result = nullptr;
      io_uring_for_each_cqe(&ring_, head, result) {
        ++done;
        if (result->user_data == stop_tag) return;
        if (result->user_data == send_tag) continue;
        echo(static_cast<unsigned>(result->user_data), result->res);
      }
      io_uring_cq_advance(&ring_, done);
    }
  }

 private:
  static constexpr std::uint64_t stop_tag = 1'000;
  static constexpr std::uint64_t send_tag = 1'001;

  void receive(unsigned number) {
    slot& own = all[number];
    own.in.set(own.bytes.data(), largest, own.from);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_recvmsg(entry, socket_, &own.in.message, 0);
    entry->user_data = number;
  }

  void echo(unsigned number, int size) {
    if (size < 0) bench::fail("recvmsg failed");
    slot& own = all[number];
    own.out.set(own.bytes.data(), static_cast<std::size_t>(size), own.from);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_sendmsg(entry, socket_, &own.out.message, 0);
    entry->user_data = send_tag;
    entry->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
    receive(number);
  }

  int socket_;
  io_uring ring_{};
};

}  // namespace

int main(int count, char** words) {
  const bool many = count == 2 && std::strcmp(words[1], "mmsg") == 0;
  if (!many && (count != 2 || std::strcmp(words[1], "ring") != 0)) {
    bench::fail("usage: raw_udp_echo mmsg|ring");
  }
  const int stop = bench::stop_signal_fd();
  const int socket = open_socket();
  if (many) {
    echo_many(socket, stop);
  } else {
    ring_echo(socket, stop).run();
  }
}
