// SPDX-License-Identifier: MIT
// See motet/detail/io/socket_listener.hpp.
#include "io/net/socket_listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <motet/detail/io/bound_path.hpp>
#include <motet/detail/io/socket_listener.hpp>
#include <motet/errors.hpp>
#include <stdexcept>
#include <utility>

#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "words/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct socket_listener::state {
  explicit state(fd listening) noexcept
      : socket(std::move(listening)),
        nonblocking((::fcntl(socket.get(), F_GETFL) & O_NONBLOCK) != 0) {}

  fd socket;
  const bool nonblocking;
  stream_queue queue;

  std::int32_t accept() {
    const net::stream_turn accepting(queue, "turn to accept on fd", socket.get());
    if (accepting.refusal() != 0) return accepting.refusal();
    operation op;
    op.kind = verb::accept;
    op.fd = socket.get();
    op.flags = SOCK_CLOEXEC;
    op.nonblocking = nonblocking;
    return perform_now(op, "accept on fd");
  }

  void check_threads() {
    if (queue.taken_elsewhere()) {
      throw std::logic_error("a fiber of another thread accepts on the listener");
    }
  }

  /// The fibers in accept() must have left it before the state is destroyed.
  void await_leave() noexcept {
    thread_state* thread = self();
    if (thread == nullptr) return;
    while (queue.in_use()) thread->snooze();
  }
};

socket_listener::socket_listener() noexcept = default;
socket_listener::socket_listener(socket_listener&&) noexcept = default;

socket_listener::socket_listener(fd listening)
    : state_(std::make_unique<state>(std::move(listening))) {}

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

std::int32_t socket_listener::accept_now() {
  return state_ == nullptr ? -EBADF : state_->accept();
}

fd socket_listener::accept_fd() {
  here().deliver();
  const int number = native_handle();  // the listener may be moved while the call waits
  return fd(static_cast<int>(settled(accept_now(), "accept", number)));
}

void socket_listener::close() {
  if (state_ == nullptr) return;
  state_->check_threads();
  const std::unique_ptr<state> closed = std::move(state_);
  closed->queue.close();
  closed->socket.close();
  closed->await_leave();
}

fd socket_listener::release() {
  if (state_ == nullptr) return fd();
  state_->check_threads();
  const std::unique_ptr<state> left = std::move(state_);
  left->queue.close();
  if (thread_state* thread = self()) thread->calls.end_all_on(left->socket.get());
  left->await_leave();
  return std::move(left->socket);
}

int socket_listener::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->socket.get();
}

net::endpoint socket_listener::local_endpoint() const {
  return net::name_of(native_handle(), "getsockname", ::getsockname);
}

fd listening_socket(const net::endpoint& where, int backlog, bool shares_port) {
  using faults::call;
  if (backlog < 1) throw std::invalid_argument("a listener's backlog must be at least 1");
  fd made = net::new_socket(where.address()->sa_family, SOCK_STREAM);
  const int on = 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (shares_port) ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  bind_to(made.get(), where, "listen on");
  bound_path path(where);  // taken away if the socket cannot listen
  if (call("listen", ::listen, made.get(), backlog) != 0) {
    throw std::system_error(errno, std::system_category(), "listen on " + where.to_string());
  }
  path.forget();
  return made;
}

}}}  // namespace motet::MOTET_ABI::detail
