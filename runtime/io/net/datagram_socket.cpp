// SPDX-License-Identifier: MIT
// See motet/net/datagram_socket.hpp.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <motet/io/io.hpp>
#include <motet/net/datagram_socket.hpp>
#include <stdexcept>

#include "base/faults.hpp"
#include "cancellation/pending_throw.hpp"
#include "core/thread_state.hpp"
#include "io/exact_io.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using net::received_datagram;

/// A message with one buffer, and with an address.
struct envelope {
  explicit envelope(std::span<std::byte> buffer) noexcept : vector{buffer.data(), buffer.size()} {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_name = &address;
    message.msg_namelen = sizeof address;
  }
  explicit envelope(std::span<const std::byte> bytes) noexcept
      : vector{const_cast<std::byte*>(bytes.data()), bytes.size()} {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
  }
  envelope(std::span<const std::byte> bytes, const net::endpoint& receiver) noexcept
      : envelope(bytes) {
    message.msg_name = const_cast<sockaddr*>(receiver.address());
    message.msg_namelen = receiver.length();
  }

  sockaddr_storage address{};
  iovec vector;
  msghdr message{};
};

/// For an unnamed socket the kernel returns no address. An address of an unsupported family is
/// dropped, because the datagram has been received already.
received_datagram opened(const msghdr& message, std::size_t size) noexcept {
  received_datagram datagram;
  datagram.size = size;
  datagram.truncated = (message.msg_flags & MSG_TRUNC) != 0;
  if (message.msg_namelen == 0) return datagram;
  try {
    datagram.from =
        net::endpoint(static_cast<const sockaddr*>(message.msg_name), message.msg_namelen);
  } catch (const std::invalid_argument&) {
  }
  return datagram;
}

constexpr std::size_t most_at_once = 1024;  // Source: recvmmsg(2), UIO_MAXIOV
constexpr std::size_t batch = 64;

void check_count(std::size_t count) {
  if (count == 0 || count > most_at_once) {
    throw std::invalid_argument("a batch must have 1 to 1,024 datagrams, not " +
                                std::to_string(count));
  }
}

/// Moves as many datagrams as it can without a wait; if that is none, waits for the first one to
/// move by `first(fd)`, and then moves what else it can. Both return minus an errno value for an
/// error, `rest(fd, begin)` how many datagrams it has moved from the place `begin` on. Returns: how
/// many datagrams it has moved.
template <typename First, typename Rest>
std::size_t move_some(int fd, std::size_t count, const char* call, First first, Rest rest) {
  thread_state& thread = here();
  end_passed_limits(thread);
  thread.deliver();
  const descriptor_guard guard(fd);
  std::int32_t result = rest(fd, std::size_t{0});
  if (result != -EAGAIN && result != -EINTR) {
    thread.yield_after_budget();
    return check_result(result, call, fd);
  }
  check_result(first(fd), call, fd);
  if (count == 1 || guard.closed()) return 1;
  result = rest(fd, std::size_t{1});
  return result < 0 ? 1 : 1 + static_cast<std::size_t>(result);
}

std::int32_t result_of(int result) noexcept {
  return result < 0 ? -errno : result;
}

std::int32_t perform_message(verb kind, int fd, msghdr& message, int flags, const char* call) {
  operation op;
  op.kind = kind;
  op.fd = fd;
  op.flags = flags;
  op.message = &message;
  return perform_now(op, call);
}

}  // namespace

received_datagram datagram_socket::receive_from(std::span<std::byte> buffer) {
  envelope packet(buffer);
  const std::size_t size = io::recvmsg(native_handle(), packet.message);
  return opened(packet.message, size);
}

received_datagram datagram_socket::receive_from(std::span<std::byte> buffer,
                                                std::error_code& error) noexcept {
  envelope packet(buffer);
  const std::size_t size = io::recvmsg(native_handle(), packet.message, 0, error);
  return error ? received_datagram() : opened(packet.message, size);
}

std::size_t datagram_socket::receive_many(std::span<net::datagram_slot> slots) {
  check_count(slots.size());
  std::array<mmsghdr, batch> headers{};
  std::array<sockaddr_storage, batch> addresses{};
  std::array<iovec, batch> vectors{};
  const std::size_t count = std::min(slots.size(), batch);
  for (std::size_t i = 0; i < count; ++i) {
    vectors[i] = {slots[i].buffer.data(), slots[i].buffer.size()};
    headers[i].msg_hdr.msg_iov = &vectors[i];
    headers[i].msg_hdr.msg_iovlen = 1;
    headers[i].msg_hdr.msg_name = &addresses[i];
    headers[i].msg_hdr.msg_namelen = sizeof addresses[i];
  }
  const std::size_t total = move_some(
      native_handle(), count, "recvmmsg",
      [&](int source) {
        const std::int32_t size =
            perform_message(verb::recvmsg, source, headers[0].msg_hdr, 0, "receive_many");
        if (size >= 0) headers[0].msg_len = static_cast<unsigned>(size);
        return size;
      },
      [&](int source, std::size_t begin) {
        return result_of(faults::call("recvmmsg", sockets::recvmmsg, source, headers.data() + begin,
                                      static_cast<unsigned>(count - begin), MSG_DONTWAIT, nullptr));
      });
  for (std::size_t i = 0; i < total; ++i) {
    slots[i].got = opened(headers[i].msg_hdr, headers[i].msg_len);
  }
  return total;
}

void datagram_socket::send_to(std::span<const std::byte> bytes, const net::endpoint& receiver) {
  io::sendmsg(native_handle(), envelope(bytes, receiver).message);
}

void datagram_socket::send_to(std::span<const std::byte> bytes, const net::endpoint& receiver,
                              std::error_code& error) noexcept {
  io::sendmsg(native_handle(), envelope(bytes, receiver).message, 0, error);
}

void datagram_socket::send(std::span<const std::byte> bytes) {
  io::sendmsg(native_handle(), envelope(bytes).message);
}

void datagram_socket::send(std::span<const std::byte> bytes, std::error_code& error) noexcept {
  io::sendmsg(native_handle(), envelope(bytes).message, 0, error);
}

std::size_t datagram_socket::send_many(std::span<const net::outgoing_datagram> datagrams) {
  check_count(datagrams.size());
  std::array<mmsghdr, batch> headers{};
  std::array<iovec, batch> vectors{};
  const std::size_t count = std::min(datagrams.size(), batch);
  for (std::size_t i = 0; i < count; ++i) {
    const net::outgoing_datagram& datagram = datagrams[i];
    vectors[i] = {const_cast<std::byte*>(datagram.bytes.data()), datagram.bytes.size()};
    headers[i].msg_hdr.msg_iov = &vectors[i];
    headers[i].msg_hdr.msg_iovlen = 1;
    headers[i].msg_hdr.msg_name = const_cast<sockaddr*>(datagram.to.address());
    headers[i].msg_hdr.msg_namelen = datagram.to.length();
  }
  return move_some(
      native_handle(), count, "sendmmsg",
      [&](int target) {
        return perform_message(verb::sendmsg, target, headers[0].msg_hdr, MSG_NOSIGNAL,
                               "send_many");
      },
      [&](int target, std::size_t begin) {
        return result_of(faults::call("sendmmsg", sockets::sendmmsg, target, headers.data() + begin,
                                      static_cast<unsigned>(count - begin),
                                      MSG_DONTWAIT | MSG_NOSIGNAL));
      });
}

void datagram_socket::connect_to(const net::endpoint& peer) {
  if (sockets::connect_datagrams(native_handle(), peer.address(), peer.length()) == 0) return;
  throw std::system_error(errno, std::system_category(), "connect to " + peer.to_string());
}

net::endpoint datagram_socket::local_endpoint() const {
  return net::name_of(native_handle(), "getsockname", sockets::getsockname);
}

net::endpoint datagram_socket::peer_endpoint() const {
  return net::name_of(native_handle(), "getpeername", sockets::getpeername);
}

}}}  // namespace motet::MOTET_ABI::detail
