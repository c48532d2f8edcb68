// SPDX-License-Identifier: MIT
// See motet/net/socket_listener.hpp.
#include "io/net/socket_listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/detail/io/unix_socket_path.hpp>
#include <motet/net/socket_listener.hpp>
#include <stdexcept>
#include <utility>

#include "base/faults.hpp"
#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct socket_listener::state {
  explicit state(fd descriptor) noexcept
      : socket(std::move(descriptor)),
        nonblocking((sys::fcntl(socket.get(), F_GETFL) & O_NONBLOCK) != 0) {}

  fd socket;
  const bool nonblocking;
  stream_queue queue;

  std::int32_t accept(sockaddr* address, socklen_t* length) {
    operation op;
    op.kind = verb::accept;
    op.flags = SOCK_CLOEXEC;
    op.nonblocking = nonblocking;
    op.address = address;
    op.address_length = length;
    return perform(op);
  }

  std::int32_t perform(operation& op) {
    const net::stream_turn turn(queue, "turn to accept on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    op.fd = socket.get();
    return perform_now(op, "accept on fd");
  }

  void check_threads() {
    if (queue.held_elsewhere()) {
      throw std::logic_error("listener: a fiber of another thread is accepting on it");
    }
  }

  /// The fibers in accept() must have left it before the state is destroyed.
  void await_leave() noexcept {
    thread_state* thread = self();
    if (thread == nullptr) return;
    while (queue.in_call()) thread->snooze();
  }
};

socket_listener::socket_listener() noexcept = default;
socket_listener::socket_listener(socket_listener&&) noexcept = default;

socket_listener::socket_listener(fd descriptor) : state_(new state(std::move(descriptor))) {}

socket_listener& socket_listener::operator=(socket_listener&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

socket_listener::~socket_listener() {
  close();
}

std::int32_t socket_listener::accept_now(sockaddr* address, socklen_t* length) {
  return state_ == nullptr ? -EBADF : state_->accept(address, length);
}

std::int32_t socket_listener::accept_ready(sockaddr* address, socklen_t* length) noexcept {
  if (state_ == nullptr || !state_->nonblocking) return -EAGAIN;
  const int descriptor = faults::call("accept4", sockets::accept_now, state_->socket.get(), address,
                                      length, SOCK_CLOEXEC);
  return descriptor < 0 ? -errno : descriptor;
}

fd socket_listener::accept_fd() {
  here().deliver();
  const int number = native_handle();  // the listener may be moved while the call waits
  return fd(static_cast<int>(check_result(accept_now(), "accept", number)));
}

void socket_listener::close() {
  if (state_ == nullptr) return;
  state_->check_threads();
  const owned<state> old_state = std::move(state_);
  old_state->queue.close();
  old_state->socket.close();
  old_state->await_leave();
}

fd socket_listener::release() {
  if (state_ == nullptr) return fd();
  state_->check_threads();
  const owned<state> old_state = std::move(state_);
  old_state->queue.close();
  sockets::hand_over(old_state->socket.get());
  if (thread_state* thread = self()) thread->calls.end_all_on(old_state->socket.get());
  old_state->await_leave();
  return std::move(old_state->socket);
}

int socket_listener::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->socket.get();
}

net::endpoint socket_listener::local_endpoint() const {
  return net::name_of(native_handle(), "getsockname", sockets::getsockname);
}

namespace {

void set(const fd& socket, int level, int option, bool enable) {
  const int value = enable ? 1 : 0;
  if (sockets::setsockopt(socket.get(), level, option, &value, sizeof value) != 0) {
    throw_errno(errno, "setsockopt", socket.get());
  }
}

}  // namespace

fd bound_socket(const net::endpoint& address, const net::listen_options& options) {
  if (options.backlog < 1) throw std::invalid_argument("listener: the backlog must be at least 1");
  const int family = address.address()->sa_family;
  fd socket = net::new_socket(family, SOCK_STREAM);
  if (family != AF_UNIX) {
    set(socket, SOL_SOCKET, SO_REUSEADDR, options.reuse_address);
    set(socket, SOL_SOCKET, SO_REUSEPORT, options.reuse_port);
  }
  if (family == AF_INET6) set(socket, IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only);
  bind_to(socket.get(), address, "listen on");
  return socket;
}

void share_port(const fd& socket) {
  set(socket, SOL_SOCKET, SO_REUSEPORT, true);
}

void start_listening(const fd& socket, const net::endpoint& address, int backlog) {
  if (faults::call("listen", sockets::listen, socket.get(), backlog) != 0) {
    throw std::system_error(errno, std::system_category(), "listen on " + address.to_string());
  }
}

fd listening_socket(const net::endpoint& address, const net::listen_options& options) {
  fd socket = bound_socket(address, options);
  unix_socket_path path(address);  // taken away if the socket cannot listen
  start_listening(socket, address, options.backlog);
  path.forget();
  return socket;
}

}}}  // namespace motet::MOTET_ABI::detail
