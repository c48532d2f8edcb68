// SPDX-License-Identifier: MIT
// Sockets of all kinds, as kinds_of_files.hpp has other descriptors.
#pragma once

#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string_view>
#include <utility>
#include <vector>

#include "io/full_socket.hpp"
#include "io/kinds_of_files.hpp"
#include "sockets.hpp"

namespace testing {

inline int tcp(int flags = 0) {
  return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
}

inline int bound_to_loopback(int socket) {
  const sockaddr_in address = loopback_address(0);
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(socket, where, sizeof address) == 0 ? socket : -1;
}

inline int bound_to_a_name(int socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(socket, where, sizeof(sa_family_t)) == 0 ? socket : -1;
}

inline int listening(int socket) {
  return ::listen(socket, 8) == 0 ? socket : -1;
}

/// Connects `socket` to where `other` is bound.
inline int connected_to(int socket, int other) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  ::getsockname(other, where, &size);
  return ::connect(socket, where, size) == 0 ? socket : -1;
}

struct connection {
  int here;
  int there;

  connection with_bytes() const { return ::send(there, "bytes", 5, 0) == 5 ? *this : failed(); }
  /// Has what `there` has said arrive.
  int settled() const {
    ::usleep(2000);
    return here;
  }
  static connection failed() { return {-1, -1}; }
};

inline connection tcp_connection(int flags = 0) {
  const int listens = listening(bound_to_loopback(tcp()));
  const int here = connected_to(tcp(), listens);
  if (flags != 0) ::fcntl(here, F_SETFL, flags);
  return {here, ::accept(listens, nullptr, nullptr)};
}

inline int with_small(int option, int socket) {
  const int size = 4096;
  ::setsockopt(socket, SOL_SOCKET, option, &size, sizeof size);
  return socket;
}

/// Its buffers stay as small as they are, so that what is full stays full.
inline connection small_tcp_connection() {
  const int listens = listening(bound_to_loopback(with_small(SO_RCVBUF, tcp())));
  const int here = connected_to(with_small(SO_SNDBUF, tcp()), listens);
  return {here, ::accept(listens, nullptr, nullptr)};
}

inline connection unix_connection(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return connection::failed();
  return {ends[0], ends[1]};
}

inline int closed_by_peer(const connection& made) {
  ::close(made.there);
  return made.settled();
}

inline int reset_by_peer(const connection& made) {
  const linger at_once{1, 0};
  ::setsockopt(made.there, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return closed_by_peer(made);
}

inline int shut(const connection& made, int how) {
  ::shutdown(made.here, how);
  return made.settled();
}

/// `quiet`: see fill_for_good().
inline int full(const connection& made, int quiet = 1) {
  fill_for_good(made.here, quiet);
  return made.here;
}

inline int udp(bool bound) {
  const int made = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return bound ? bound_to_loopback(made) : made;
}

inline connection udp_connection() {
  const connection made{udp(true), udp(true)};
  if (connected_to(made.here, made.there) < 0) return connection::failed();
  return connected_to(made.there, made.here) < 0 ? connection::failed() : made;
}

inline int unix_socket(int type) {
  return ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
}

inline const std::vector<kind> kinds_of_sockets = {
    {"tcp", [] { return tcp(); }},
    {"tcp, O_NONBLOCK", [] { return tcp(SOCK_NONBLOCK); }},
    {"tcp, bound", [] { return bound_to_loopback(tcp()); }},
    {"tcp, listening", [] { return listening(bound_to_loopback(tcp())); }},
    {"tcp, listening, O_NONBLOCK", [] { return listening(bound_to_loopback(tcp(SOCK_NONBLOCK))); }},
    {"tcp, listening, with a caller",
     [] {
       const int made = listening(bound_to_loopback(tcp()));
       connected_to(tcp(), made);
       return made;
     }},
    {"tcp, connected", [] { return tcp_connection().here; }},
    {"tcp, connected, O_NONBLOCK", [] { return tcp_connection(O_NONBLOCK).here; }},
    {"tcp, with bytes", [] { return tcp_connection().with_bytes().settled(); }},
    {"tcp, with an urgent byte",
     [] {
       const connection made = tcp_connection();
       ::send(made.there, "u", 1, MSG_OOB);
       return made.settled();
     }},
    {"tcp, full", [] { return full(small_tcp_connection(), 80); }},
    {"tcp, closed by its peer", [] { return closed_by_peer(tcp_connection()); }},
    {"tcp, closed by its peer, with bytes",
     [] { return closed_by_peer(tcp_connection().with_bytes()); }},
    {"tcp, reset by its peer", [] { return reset_by_peer(tcp_connection()); }},
    {"tcp, shut down to read", [] { return shut(tcp_connection(), SHUT_RD); }},
    {"tcp, shut down to write", [] { return shut(tcp_connection(), SHUT_WR); }},
    {"tcp, shut down", [] { return shut(tcp_connection(), SHUT_RDWR); }},
    {"tcp, refused",
     [] {
       const int made = tcp(SOCK_NONBLOCK);
       const int other = bound_to_loopback(tcp());
       connected_to(made, other);
       ready_now(made, POLLOUT);
       return made;
     }},
    {"udp", [] { return udp(false); }},
    {"udp, bound", [] { return udp(true); }},
    {"udp, connected", [] { return udp_connection().here; }},
    {"udp, with a datagram", [] { return udp_connection().with_bytes().settled(); }},
    {"udp, with an empty datagram",
     [] {
       const connection made = udp_connection();
       ::send(made.there, "", 0, 0);
       return made.settled();
     }},
    {"udp, whose peer has gone",
     [] {
       const connection made = udp_connection();
       ::close(made.there);
       ::send(made.here, "a", 1, 0);
       return made.settled();
     }},
    {"unix stream", [] { return unix_socket(SOCK_STREAM); }},
    {"unix stream, listening", [] { return listening(bound_to_a_name(unix_socket(SOCK_STREAM))); }},
    {"unix stream, listening, with a caller",
     [] {
       const int made = listening(bound_to_a_name(unix_socket(SOCK_STREAM)));
       connected_to(unix_socket(SOCK_STREAM), made);
       return made;
     }},
    {"unix stream, connected", [] { return unix_connection(SOCK_STREAM).here; }},
    {"unix stream, connected, O_NONBLOCK",
     [] { return unix_connection(SOCK_STREAM | SOCK_NONBLOCK).here; }},
    {"unix stream, with bytes", [] { return unix_connection(SOCK_STREAM).with_bytes().here; }},
    {"unix stream, full", [] { return full(unix_connection(SOCK_STREAM)); }},
    {"unix stream, closed by its peer",
     [] { return closed_by_peer(unix_connection(SOCK_STREAM)); }},
    {"unix stream, closed by a peer that left bytes unread",
     [] {
       const connection made = unix_connection(SOCK_STREAM);
       ::send(made.here, "a", 1, 0);
       return closed_by_peer(made);
     }},
    {"unix stream, shut down to write", [] { return shut(unix_connection(SOCK_STREAM), SHUT_WR); }},
    {"unix seqpacket", [] { return unix_socket(SOCK_SEQPACKET); }},
    {"unix seqpacket, connected", [] { return unix_connection(SOCK_SEQPACKET).here; }},
    {"unix seqpacket, with a packet",
     [] { return unix_connection(SOCK_SEQPACKET).with_bytes().here; }},
    {"unix seqpacket, closed by its peer",
     [] { return closed_by_peer(unix_connection(SOCK_SEQPACKET)); }},
    {"unix dgram", [] { return unix_socket(SOCK_DGRAM); }},
    {"unix dgram, bound", [] { return bound_to_a_name(unix_socket(SOCK_DGRAM)); }},
    {"unix dgram, connected", [] { return unix_connection(SOCK_DGRAM).here; }},
    {"unix dgram, with a datagram", [] { return unix_connection(SOCK_DGRAM).with_bytes().here; }},
    {"unix dgram, full", [] { return full(unix_connection(SOCK_DGRAM)); }},
    {"unix dgram, closed by its peer", [] { return closed_by_peer(unix_connection(SOCK_DGRAM)); }},
    {"netlink", [] { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }},
    {"packets", [] { return ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); }},
    {"raw icmp", [] { return ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP); }},
};

/// Sockets of all kinds, each in non-blocking mode.
inline std::vector<kind> non_blocking_sockets() {
  std::vector<kind> made = kinds_of_sockets;
  for (kind& each : made) {
    each.make = [make = each.make] {
      const int socket = make();
      if (socket >= 0) ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
      return socket;
    };
  }
  return made;
}

/// Sockets of the kinds that are in blocking mode.
inline std::vector<kind> blocking_sockets() {
  std::vector<kind> made;
  for (const kind& each : kinds_of_sockets) {
    if (each.name.find("O_NONBLOCK") == std::string_view::npos) made.push_back(each);
  }
  return made;
}

/// All descriptors, of sockets and others.
inline const std::vector<kind>& all_kinds() {
  static const std::vector<kind> all = [] {
    std::vector<kind> made = kinds_of_files;
    made.insert(made.end(), kinds_of_sockets.begin(), kinds_of_sockets.end());
    return made;
  }();
  return all;
}

}  // namespace testing
