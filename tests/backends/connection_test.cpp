// SPDX-License-Identifier: MIT
// The seam, where connections are made and descriptors become ready: the same outcomes whatever a
// backend is built on.
#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include <cerrno>
#include <motet/runtime/backend.hpp>

#include "backends/machine.hpp"
#include "catch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using testing::counted_signal;
using testing::describe_connect;
using testing::machine;
using testing::make_pipe;
using testing::make_socket_pair;
using testing::put;
using testing::trial;

namespace {

/// A listener whose queue is full: another connection to it stays under way.
/// A connection that is made is in the listener's queue only once its last acknowledgement is
/// there, which may be after the connecting end knows of it.
struct full_listener {
  full_listener() {
    pollfd queue{listener.get(), POLLIN, 0};
    REQUIRE(::poll(&queue, 1, 10'000) == 1);
  }
  fd listener = testing::make_listener(0, 0);
  fd first_client = testing::connect_to(testing::port_of(listener.get()));
  sockaddr_in address = testing::loopback_address(testing::port_of(listener.get()));
};

}  // namespace

TEST_CASE("backend accept takes a connection that waits, or waits for one", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("listener's mode " << mode);
    const fd listener = testing::make_listener(mode);
    const std::uint16_t port = testing::port_of(listener.get());
    const int flags = ::fcntl(listener.get(), F_GETFL);

    const fd early = testing::connect_to(port);
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    trial at_once(verb::accept, listener.get(), &peer, 0, SOCK_CLOEXEC);
    at_once.op.address_length = &size;
    const fd first(m.perform(at_once));
    REQUIRE(first);
    CHECK(size == sizeof peer);
    CHECK(ntohs(peer.sin_port) == testing::port_of(early.get()));
    CHECK((::fcntl(first.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(first.get(), F_GETFL) & O_NONBLOCK) == 0);

    trial next_accept(verb::accept, listener.get(), nullptr, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
    next_accept.op.nonblocking = mode != 0;
    m.submit(next_accept);
    m.look();
    CHECK(next_accept.ends == 0);
    const fd late = testing::connect_to(port);
    const fd second(m.result_of(next_accept));
    REQUIRE(second);
    CHECK((::fcntl(second.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK(::fcntl(listener.get(), F_GETFL) == flags);
  }
}

TEST_CASE("backend accept that is cancelled leaves the next connection to others", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    const fd listener = testing::make_listener(mode);
    trial victim(verb::accept, listener.get());
    m.submit(victim);
    m.look();
    CHECK(m.cancel(victim) == -ECANCELED);
    const fd peer = testing::connect_to(testing::port_of(listener.get()));
    CHECK(testing::ready_now(listener.get(), POLLIN));
    trial next(verb::accept, listener.get());
    CHECK(fd(m.perform(next)));
  }
}

TEST_CASE("backend connect reaches its listener, and keeps the socket's mode and timeout",
          "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("socket's mode " << mode);
    const fd listener = testing::make_listener();
    const fd socket = testing::make_tcp_socket(mode);
    const timeval patience{7, 250'000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const int flags = ::fcntl(socket.get(), F_GETFL);
    const auto address = testing::loopback_address(testing::port_of(listener.get()));
    trial connect;
    describe_connect(connect, socket.get(), address);
    CHECK(m.perform(connect) == 0);
    const fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(accepted);
    put(socket.get(), "hello");
    char text[5];
    CHECK(::recv(accepted.get(), text, sizeof text, MSG_WAITALL) == 5);
    CHECK(::fcntl(socket.get(), F_GETFL) == flags);
    timeval timeout{};
    socklen_t size = sizeof timeout;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, &size);
    CHECK(timeout.tv_sec == 7);
    CHECK(timeout.tv_usec / 10'000 == 25);  // the kernel counts in ticks
  }
}

TEST_CASE("backend connect is refused where nobody listens", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    const fd socket = testing::make_tcp_socket(mode);
    const auto address = testing::loopback_address(testing::unused_port());
    trial connect;
    describe_connect(connect, socket.get(), address);
    CHECK(m.perform(connect) == -ECONNREFUSED);
  }
}

TEST_CASE("backend connect can be cancelled while it waits, and keeps the timeout", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("socket's mode " << mode);
    const full_listener busy;
    const fd socket = testing::make_tcp_socket(mode);
    trial connect;
    describe_connect(connect, socket.get(), busy.address);
    m.submit(connect);
    m.look();
    CHECK(connect.ends == 0);
    timeval timeout{};
    socklen_t size = sizeof timeout;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, &size);
    CHECK(timeout.tv_sec == 0);
    CHECK(timeout.tv_usec == 0);
    CHECK(m.cancel(connect) == -ECANCELED);
  }
}

TEST_CASE("backend connect does not end by a signal", "[backend]") {
  machine m;
  const counted_signal alarms(SIGALRM);
  const full_listener busy;
  const std::size_t rounds = testing::scaled(2'000, 100);
  for (std::size_t round = 0; round < rounds; ++round) {
    const fd socket = testing::make_tcp_socket();
    trial connect;
    describe_connect(connect, socket.get(), busy.address);
    const itimerval soon{{0, 30}, {0, 300}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    m.submit(connect);
    m.look();
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    CAPTURE(round, connect.op.result);
    REQUIRE(connect.ends == 0);
    REQUIRE(m.cancel(connect) == -ECANCELED);
  }
}

TEST_CASE("backend wait_fd returns the events of the mask that are ready", "[backend]") {
  machine m;
  const auto ready_for = [&](int fd, int mask) {
    trial look(verb::wait_fd, fd, nullptr, 0, mask);
    return m.perform(look);
  };
  auto pipe = make_pipe();
  CHECK(ready_for(pipe.second(), POLLOUT) == POLLOUT);
  put(pipe.second(), "x");
  CHECK(ready_for(pipe.first(), POLLIN) == POLLIN);
  auto socket = make_socket_pair();
  CHECK(ready_for(socket.first(), POLLIN | POLLOUT) == POLLOUT);
  put(socket.second(), "x");
  CHECK(ready_for(socket.first(), POLLIN | POLLOUT) == (POLLIN | POLLOUT));
  const fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(ready_for(null.get(), POLLIN | POLLOUT) == (POLLIN | POLLOUT));
  CHECK(ready_for(null.get(), POLLIN) == POLLIN);
  const fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  CHECK(ready_for(file.get(), POLLIN) == POLLIN);
}

TEST_CASE("backend wait_fd ends when the other side goes", "[backend]") {
  machine m;
  for (const bool waits : {false, true}) {
    INFO("waits: " << waits);
    auto read_side = make_pipe();
    trial hangup(verb::wait_fd, read_side.first(), nullptr, 0, POLLIN);
    auto write_side = make_pipe();
    testing::fill(write_side.second());
    trial error(verb::wait_fd, write_side.second(), nullptr, 0, POLLOUT);
    auto socket = make_socket_pair();
    trial hangup_of_both(verb::wait_fd, socket.first(), nullptr, 0, POLLIN);
    if (waits) {
      m.submit(hangup);
      m.submit(error);
      m.submit(hangup_of_both);
      m.look();
      CHECK(hangup.ends + error.ends + hangup_of_both.ends == 0);
    }
    read_side.close_second();
    write_side.close_first();
    socket.close_second();
    if (!waits) {
      m.submit(hangup);
      m.submit(error);
      m.submit(hangup_of_both);
    }
    CHECK(m.result_of(hangup) == POLLHUP);
    CHECK((m.result_of(error) & POLLERR) != 0);
    CHECK(m.result_of(hangup_of_both) == (POLLIN | POLLHUP));
  }
}

TEST_CASE("backend wait_fd waits for the events of its mask, and takes nothing", "[backend]") {
  machine m;
  auto socket = make_socket_pair();
  trial readiness(verb::wait_fd, socket.first(), nullptr, 0, POLLIN);
  m.submit(readiness);  // it is writable all the time
  m.look();
  CHECK(readiness.ends == 0);
  put(socket.second(), "abc");
  CHECK(m.result_of(readiness) == POLLIN);
  CHECK(testing::take_all(socket.first()) == "abc");

  trial victim(verb::wait_fd, socket.first(), nullptr, 0, POLLIN);
  m.submit(victim);
  m.look();
  CHECK(m.cancel(victim) == -ECANCELED);
}
