// SPDX-License-Identifier: MIT
// See net/unix_stream.hpp.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <motet/base/errors.hpp>
#include <motet/io/io.hpp>
#include <motet/net/unix_stream.hpp>
#include <utility>

#include "base/faults.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

constexpr int scm_pidfd = 4;  // newer than Debian 12's headers

/// A message of one byte with a descriptor. When receiving, it has room for the kernel's additions:
/// the sender's credentials, security label and pidfd. Source: unix(7), SO_PASSCRED, SO_PASSSEC;
/// Linux 6.5, SO_PASSPIDFD.
struct descriptor_message {
  descriptor_message() noexcept {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }

  void put(int descriptor) noexcept {
    message.msg_controllen = CMSG_LEN(sizeof descriptor);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }

  /// Closes all received descriptors except the first.
  /// Returns: the first descriptor, or an empty fd.
  fd take() noexcept {
    fd first;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET) continue;
      if (head->cmsg_type != SCM_RIGHTS && head->cmsg_type != scm_pidfd) continue;
      const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof descriptor, sizeof descriptor);
        fd came(descriptor);
        if (head->cmsg_type == SCM_RIGHTS && !first) first = std::move(came);
      }
    }
    return first;
  }

  char byte = 0;
  iovec vector{&byte, 1};
  alignas(cmsghdr) std::array<std::byte, 1024> control{};
  msghdr message{};
};

}  // namespace

unix_stream unix_stream::connect(const endpoint& peer) {
  detail::here().deliver();
  std::error_code error;
  unix_stream result = connect(peer, error);
  if (!error) return result;
  if (error == std::errc::operation_canceled) detail::check_result(-ECANCELED, "connect", -1);
  throw std::system_error(error, "connect to " + peer.to_string());
}

unix_stream unix_stream::connect(const endpoint& peer, std::error_code& error) noexcept {
  try {
    fd socket = new_socket(AF_UNIX, SOCK_STREAM);
    io::connect(socket.get(), peer.address(), peer.length(), error);
    if (!error) return unix_stream(std::move(socket));
  } catch (const std::system_error& failure) {
    error = failure.code();
  } catch (...) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

void unix_stream::send_fd(int descriptor) {
  descriptor_message carrier;
  carrier.put(descriptor);
  send_message(carrier.message);
}

std::optional<fd> unix_stream::receive_fd() {
  descriptor_message carrier;
  if (receive_message(carrier.message) == 0) return std::nullopt;
  fd descriptor = carrier.take();
  if (descriptor) return descriptor;
  // The kernel cuts off a descriptor for which this process has no number.
  const bool cut_off = (carrier.message.msg_flags & MSG_CTRUNC) != 0;
  detail::throw_errno(cut_off ? EMFILE : ENOMSG, "receive_fd", native_handle());
}

endpoint unix_stream::local_endpoint() const {
  return name_of(native_handle(), "getsockname", ::getsockname);
}

endpoint unix_stream::peer_endpoint() const {
  return name_of(native_handle(), "getpeername", ::getpeername);
}

std::pair<unix_stream, unix_stream> stream_pair() {
  std::array<int, 2> ends{-1, -1};
  if (detail::faults::call("socketpair", ::socketpair, AF_UNIX,
                           SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    detail::throw_errno(errno, "socketpair");
  }
  fd first(ends[0]);
  fd second(ends[1]);
  return {unix_stream(std::move(first)), unix_stream(std::move(second))};
}

}}}  // namespace motet::MOTET_ABI::net
