// SPDX-License-Identifier: MIT
// The bare limit of one-shot io_uring operations: a single-threaded TCP echo server. An echo is one
// linked pair, SEND then RECV into the same buffer, so each request costs one completion and the
// requests that became ready together share one system call.
#include <liburing.h>
#include <poll.h>

#include <array>
#include <memory>
#include <vector>

#include "../bench_args.hpp"

namespace {

struct connection {
  int fd;
  std::array<char, 16 * 1024> buffer;
};

// Everything that is not a RECV has a small number as its user data; a RECV has its connection.
enum tag : std::uint64_t { tag_send, tag_accept, tag_stop };

class echo_server {
 public:
  explicit echo_server(in_port_t port)
      : stop_(bench::stop_signal_fd()), listener_(bench::listen_on_loopback(port, 0)) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                   IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;
    params.cq_entries = 4096;
    check(io_uring_queue_init_params(256, &ring_, &params), "io_uring_queue_init_params");
    check(io_uring_register_ring_fd(&ring_), "io_uring_register_ring_fd");
  }
  echo_server(const echo_server&) = delete;
  echo_server& operator=(const echo_server&) = delete;
  ~echo_server() { io_uring_queue_exit(&ring_); }

  void run() {
    io_uring_sqe* const stop = next_sqe();
    io_uring_prep_poll_add(stop, stop_, POLLIN);
    io_uring_sqe_set_data64(stop, tag_stop);
    accept_next();
    while (!stopping_) {
      const int submitted = io_uring_submit_and_wait(&ring_, 1);
      if (submitted != -EINTR) check(submitted, "io_uring_submit_and_wait");
      unsigned head = 0;
      unsigned count = 0;
      io_uring_cqe* cqe = nullptr;
      io_uring_for_each_cqe(&ring_, head, cqe) {
        complete(*cqe);
        ++count;
      }
      io_uring_cq_advance(&ring_, count);
    }
  }

 private:
  // liburing returns the negative error instead of setting errno.
  static void check(int result, const char* what) {
    if (result < 0) bench::fail(std::string(what) + ": " + std::strerror(-result));
  }

  void make_room(unsigned entries) {
    if (io_uring_sq_space_left(&ring_) < entries) check(io_uring_submit(&ring_), "io_uring_submit");
  }

  io_uring_sqe* next_sqe() {
    make_room(1);
    return io_uring_get_sqe(&ring_);
  }

  void complete(const io_uring_cqe& cqe) {
    switch (cqe.user_data) {
      case tag_send:
        return;  // only a failure is reported; it has also cancelled the linked RECV
      case tag_accept:
        return accepted(cqe.res);
      case tag_stop:
        stopping_ = true;
        return;
      default:
        received(*reinterpret_cast<connection*>(cqe.user_data), cqe.res, cqe.flags);
    }
  }

  void accept_next() {
    io_uring_sqe* const sqe = next_sqe();
    io_uring_prep_accept(sqe, listener_, nullptr, nullptr, SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, tag_accept);
  }

  void accepted(int fd) {
    if (fd != -ECONNABORTED && fd != -EINTR) {
      check(fd, "accept");
      if (idle_.empty()) idle_.push_back(connections_.emplace_back(new connection).get());
      connection& peer = *idle_.back();
      idle_.pop_back();
      peer.fd = fd;
      receive(peer, 0);
    }
    accept_next();
  }

  void received(connection& peer, int size, unsigned flags) {
    if (size <= 0) {
      close(peer.fd);
      idle_.push_back(&peer);
      return;
    }
    make_room(2);  // a link does not reach across two submissions
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
    // MSG_WAITALL leaves it to the kernel to finish a partial send.
    io_uring_prep_send(sqe, peer.fd, peer.buffer.data(), static_cast<std::size_t>(size),
                       MSG_NOSIGNAL | MSG_WAITALL);
    io_uring_sqe_set_data64(sqe, tag_send);
    io_uring_sqe_set_flags(sqe, IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS);
    // With the socket read empty, trying before polling would be wasted.
    receive(peer, (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0 ? 0 : IORING_RECVSEND_POLL_FIRST);
  }

  void receive(connection& peer, std::uint16_t flags) {
    io_uring_sqe* const sqe = next_sqe();
    io_uring_prep_recv(sqe, peer.fd, peer.buffer.data(), peer.buffer.size(), 0);
    sqe->ioprio = flags;
    io_uring_sqe_set_data(sqe, &peer);
  }

  int stop_;
  int listener_;
  bool stopping_ = false;
  io_uring ring_;
  std::vector<std::unique_ptr<connection>> connections_;
  std::vector<connection*> idle_;
};

}  // namespace

int main(int argc, char** argv) {
  double port = 0;
  bench::parse_options(argc, argv, {{"--port", &port, 0, 65535}});
  bench::raise_file_limit();
  echo_server(static_cast<in_port_t>(port)).run();
}
