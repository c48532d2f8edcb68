// SPDX-License-Identifier: MIT
// See net/tcp_stream.hpp.
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <motet/dns.hpp>
#include <motet/errors.hpp>
#include <motet/io.hpp>
#include <motet/net/tcp_stream.hpp>
#include <stdexcept>
#include <string>

#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "words/faults.hpp"
#include "words/remote_closings.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

/// One direction of a connection.
struct direction {
  detail::stream_queue queue;
  bool drained = false;  // the last read took all the data there was
};

/// Streams have numbers, because the numbers of descriptors are used again.
std::uint64_t next_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

struct tcp_stream::state {
  explicit state(motet::fd connected) noexcept : socket(std::move(connected)) {}

  motet::fd socket;
  const std::uint64_t number = next_number();
  const detail::thread_state* used_on = nullptr;
  bool travelled = false;  // the stream has been used on more than one thread
  direction in;
  direction out;

  /// Receives or sends at most `size` bytes; the caller has the turn.
  std::int32_t move(verb kind, direction& way, const std::byte* buffer, std::size_t size) {
    constexpr std::size_t most = 0x7ffff000;
    const detail::thread_state* here = detail::self();
    travelled = travelled || (used_on != nullptr && used_on != here);
    used_on = here;
    operation op;
    op.kind = kind;
    op.fd = socket.get();
    op.flags = kind == verb::send ? MSG_NOSIGNAL : 0;
    op.buffer = const_cast<std::byte*>(buffer);
    op.length = static_cast<std::uint32_t>(std::min(size, most));
    op.stream = number;
    op.drained = way.drained;
    const std::int32_t result =
        detail::perform_now(op, kind == verb::send ? "write on fd" : "read on fd");
    way.drained =
        kind == verb::recv && result > 0 && static_cast<std::uint32_t>(result) < op.length;
    return result;
  }

  std::int32_t read(std::span<std::byte> buffer) {
    const stream_turn turn(in.queue, "turn to read on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::recv, in, buffer.data(), buffer.size());
  }

  std::int32_t write(std::span<const std::byte> buffer) {
    const stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::send, out, buffer.data(), buffer.size());
  }

  std::int32_t write_all(std::span<const std::byte> buffer) {
    const stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    while (!buffer.empty()) {
      const std::int32_t sent = move(verb::send, out, buffer.data(), buffer.size());
      if (sent < 0) return sent;
      buffer = buffer.subspan(static_cast<std::size_t>(sent));
    }
    return 0;
  }

  void check_threads() {
    if (in.queue.taken_elsewhere() || out.queue.taken_elsewhere()) {
      throw std::logic_error("a fiber of another thread reads or writes on the stream");
    }
  }

  void close_socket() {
    if (!travelled && (used_on == nullptr || used_on == detail::self())) {
      socket.close();
      return;
    }
    if (detail::thread_state* thread = detail::self()) thread->calls.end_all_on(socket.get());
    const detail::remote_closing guard;
    ::close(socket.release());
  }
};

namespace {

bool no_delay(int fd, bool on) noexcept {
  const int value = on ? 1 : 0;
  return detail::faults::call("setsockopt", ::setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &value,
                              socklen_t{sizeof value}) == 0;
}

/// Makes a non-blocking socket: with a blocking one only io_uring could connect without blocking
/// the thread for a moment.
fd make_socket(const endpoint& peer) {
  fd made(detail::faults::call("socket", ::socket, peer.address()->sa_family,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) detail::throw_errno(errno, "socket");
  return made;
}

}  // namespace

tcp_stream::tcp_stream() noexcept = default;
tcp_stream::tcp_stream(tcp_stream&&) noexcept = default;

tcp_stream& tcp_stream::operator=(tcp_stream&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

/// A connection that is gone already may refuse the option; the first read will fail then.
tcp_stream::tcp_stream(fd connected) : state_(std::make_unique<state>(std::move(connected))) {
  no_delay(native_handle(), true);
}

tcp_stream::~tcp_stream() {
  close();
}

tcp_stream tcp_stream::connect(const endpoint& peer) {
  fd socket = make_socket(peer);
  io::connect(socket.get(), peer.address(), peer.length());
  return tcp_stream(std::move(socket));
}

tcp_stream tcp_stream::connect(const endpoint& peer, std::error_code& error) noexcept {
  try {
    fd socket = make_socket(peer);
    io::connect(socket.get(), peer.address(), peer.length(), error);
    if (!error) return tcp_stream(std::move(socket));
  } catch (const std::system_error& refused) {
    error = refused.code();
  } catch (...) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

tcp_stream tcp_stream::connect(std::string_view host, std::uint16_t port) {
  std::error_code error;
  endpoint last;
  for (const endpoint& each : dns::resolve(host, port)) {
    tcp_stream connected = connect(each, error);
    if (!error) return connected;
    detail::here().deliver();
    last = each;
  }
  throw std::system_error(error, "connect to " + std::string(host) + " (" + last.to_string() + ")");
}

std::size_t tcp_stream::read(std::span<std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle();  // the stream may be moved while the call waits
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->read(buffer);
  return detail::settled(result, "read", number);
}

std::size_t tcp_stream::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return detail::quietly(error, [&] { return state_ == nullptr ? -EBADF : state_->read(buffer); });
}

std::size_t tcp_stream::write(std::span<const std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle();  // the stream may be moved while the call waits
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->write(buffer);
  return detail::settled(result, "write", number);
}

std::size_t tcp_stream::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::quietly(error, [&] { return state_ == nullptr ? -EBADF : state_->write(buffer); });
}

void tcp_stream::write_all(std::span<const std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle();  // the stream may be moved while the call waits
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->write_all(buffer);
  detail::settled(result, "write_all", number);
}

void tcp_stream::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  detail::quietly(error, [&] { return state_ == nullptr ? -EBADF : state_->write_all(buffer); });
}

void tcp_stream::shutdown(int how) {
  io::shutdown(native_handle(), how);
}

void tcp_stream::shutdown(int how, std::error_code& error) noexcept {
  detail::quietly(error, [&] { return ::shutdown(native_handle(), how) == 0 ? 0 : -errno; });
}

/// The fibers in a call on the stream must have left it before the state is destroyed.
void tcp_stream::close() {
  if (state_ == nullptr) return;
  state_->check_threads();
  const std::unique_ptr<state> closed = std::move(state_);
  closed->in.queue.close();
  closed->out.queue.close();
  closed->close_socket();
  if (detail::thread_state* thread = detail::self()) {
    while (closed->in.queue.in_use() || closed->out.queue.in_use()) thread->snooze();
  }
}

endpoint tcp_stream::local_endpoint() const {
  return name_of(native_handle(), "getsockname", ::getsockname);
}

endpoint tcp_stream::peer_endpoint() const {
  return name_of(native_handle(), "getpeername", ::getpeername);
}

void tcp_stream::set_no_delay(bool on) {
  if (!no_delay(native_handle(), on)) {
    detail::throw_errno(errno, "setsockopt(TCP_NODELAY)", native_handle());
  }
}

int tcp_stream::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->socket.get();
}

}}}  // namespace motet::MOTET_ABI::net
