// SPDX-License-Identifier: MIT
// Sockets of all kinds, as kinds_of_files.hpp has other descriptors.
#pragma once

#include <linux/icmp.h>
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
  const auto* pointer = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(socket, pointer, sizeof address) == 0 ? socket : -1;
}

inline int bound_to_a_name(int socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto* pointer = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(socket, pointer, sizeof(sa_family_t)) == 0 ? socket : -1;
}

/// A raw socket that lets no message pass: other tests cause some at any time.
inline int raw_icmp() {
  const int socket = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
  const icmp_filter all{~0U};
  if (socket >= 0) ::setsockopt(socket, SOL_RAW, ICMP_FILTER, &all, sizeof all);
  return socket;
}

inline int listening(int socket) {
  return ::listen(socket, 8) == 0 ? socket : -1;
}

/// Connects `socket` to where `target` is bound.
inline int connected_to(int socket, int target) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* pointer = reinterpret_cast<sockaddr*>(&address);
  ::getsockname(target, pointer, &size);
  return ::connect(socket, pointer, size) == 0 ? socket : -1;
}

struct connection {
  int end;
  int peer;

  connection with_bytes() const { return ::send(peer, "bytes", 5, 0) == 5 ? *this : failed(); }
  /// Has what `peer` has said arrive.
  int settled() const {
    ::usleep(2000);
    return end;
  }
  static connection failed() { return {-1, -1}; }
};

inline connection tcp_connection(int flags = 0) {
  const int listens = listening(bound_to_loopback(tcp()));
  const int end = connected_to(tcp(), listens);
  if (flags != 0) ::fcntl(end, F_SETFL, flags);
  return {end, ::accept(listens, nullptr, nullptr)};
}

inline int with_small(int option, int socket) {
  const int size = 4096;
  ::setsockopt(socket, SOL_SOCKET, option, &size, sizeof size);
  return socket;
}

/// Its buffers stay as small as they are, so that what is full stays full.
inline connection small_tcp_connection() {
  const int listens = listening(bound_to_loopback(with_small(SO_RCVBUF, tcp())));
  const int end = connected_to(with_small(SO_SNDBUF, tcp()), listens);
  return {end, ::accept(listens, nullptr, nullptr)};
}

inline connection unix_connection(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return connection::failed();
  return {ends[0], ends[1]};
}

inline int closed_by_peer(const connection& ends) {
  ::close(ends.peer);
  return ends.settled();
}

inline int reset_by_peer(const connection& ends) {
  const linger at_once{1, 0};
  ::setsockopt(ends.peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return closed_by_peer(ends);
}

inline int shut(const connection& ends, int direction) {
  ::shutdown(ends.end, direction);
  return ends.settled();
}

/// `quiet`: see fill_for_good().
inline int full(const connection& ends, int quiet = 1) {
  fill_for_good(ends.end, quiet);
  return ends.end;
}

inline int udp(bool bound) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return bound ? bound_to_loopback(socket) : socket;
}

inline connection udp_connection() {
  const connection ends{udp(true), udp(true)};
  if (connected_to(ends.end, ends.peer) < 0) return connection::failed();
  return connected_to(ends.peer, ends.end) < 0 ? connection::failed() : ends;
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
       const int listener = listening(bound_to_loopback(tcp()));
       connected_to(tcp(), listener);
       return listener;
     }},
    {"tcp, connected", [] { return tcp_connection().end; }},
    {"tcp, connected, O_NONBLOCK", [] { return tcp_connection(O_NONBLOCK).end; }},
    {"tcp, with bytes", [] { return tcp_connection().with_bytes().settled(); }},
    {"tcp, with an urgent byte",
     [] {
       const connection ends = tcp_connection();
       ::send(ends.peer, "u", 1, MSG_OOB);
       return ends.settled();
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
       const int socket = tcp(SOCK_NONBLOCK);
       const int target = bound_to_loopback(tcp());
       connected_to(socket, target);
       ready_now(socket, POLLOUT);
       return socket;
     }},
    {"udp", [] { return udp(false); }},
    {"udp, bound", [] { return udp(true); }},
    {"udp, connected", [] { return udp_connection().end; }},
    {"udp, with a datagram", [] { return udp_connection().with_bytes().settled(); }},
    {"udp, with an empty datagram",
     [] {
       const connection ends = udp_connection();
       ::send(ends.peer, "", 0, 0);
       return ends.settled();
     }},
    {"udp, whose peer has gone",
     [] {
       const connection ends = udp_connection();
       ::close(ends.peer);
       ::send(ends.end, "a", 1, 0);
       return ends.settled();
     }},
    {"unix stream", [] { return unix_socket(SOCK_STREAM); }},
    {"unix stream, listening", [] { return listening(bound_to_a_name(unix_socket(SOCK_STREAM))); }},
    {"unix stream, listening, with a caller",
     [] {
       const int listener = listening(bound_to_a_name(unix_socket(SOCK_STREAM)));
       connected_to(unix_socket(SOCK_STREAM), listener);
       return listener;
     }},
    {"unix stream, connected", [] { return unix_connection(SOCK_STREAM).end; }},
    {"unix stream, connected, O_NONBLOCK",
     [] { return unix_connection(SOCK_STREAM | SOCK_NONBLOCK).end; }},
    {"unix stream, with bytes", [] { return unix_connection(SOCK_STREAM).with_bytes().end; }},
    {"unix stream, full", [] { return full(unix_connection(SOCK_STREAM)); }},
    {"unix stream, closed by its peer",
     [] { return closed_by_peer(unix_connection(SOCK_STREAM)); }},
    {"unix stream, closed by a peer that left bytes unread",
     [] {
       const connection ends = unix_connection(SOCK_STREAM);
       ::send(ends.end, "a", 1, 0);
       return closed_by_peer(ends);
     }},
    {"unix stream, shut down to write", [] { return shut(unix_connection(SOCK_STREAM), SHUT_WR); }},
    {"unix seqpacket", [] { return unix_socket(SOCK_SEQPACKET); }},
    {"unix seqpacket, connected", [] { return unix_connection(SOCK_SEQPACKET).end; }},
    {"unix seqpacket, with a packet",
     [] { return unix_connection(SOCK_SEQPACKET).with_bytes().end; }},
    {"unix seqpacket, closed by its peer",
     [] { return closed_by_peer(unix_connection(SOCK_SEQPACKET)); }},
    {"unix dgram", [] { return unix_socket(SOCK_DGRAM); }},
    {"unix dgram, bound", [] { return bound_to_a_name(unix_socket(SOCK_DGRAM)); }},
    {"unix dgram, connected", [] { return unix_connection(SOCK_DGRAM).end; }},
    {"unix dgram, with a datagram", [] { return unix_connection(SOCK_DGRAM).with_bytes().end; }},
    {"unix dgram, full", [] { return full(unix_connection(SOCK_DGRAM)); }},
    {"unix dgram, closed by its peer", [] { return closed_by_peer(unix_connection(SOCK_DGRAM)); }},
    {"netlink", [] { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }},
    {"packets", [] { return ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); }},
    {"raw icmp", raw_icmp},
};

/// Sockets of all kinds, each in non-blocking mode.
inline std::vector<kind> non_blocking_sockets() {
  std::vector<kind> kinds = kinds_of_sockets;
  for (kind& entry : kinds) {
    entry.make = [make = entry.make] {
      const int socket = make();
      if (socket >= 0) ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
      return socket;
    };
  }
  return kinds;
}

/// Sockets of the kinds that are in blocking mode.
inline std::vector<kind> blocking_sockets() {
  std::vector<kind> kinds;
  for (const kind& entry : kinds_of_sockets) {
    if (entry.name.find("O_NONBLOCK") == std::string_view::npos) kinds.push_back(entry);
  }
  return kinds;
}

/// All descriptors, of sockets and others.
inline const std::vector<kind>& all_kinds() {
  static const std::vector<kind> kinds = [] {
    std::vector<kind> list = kinds_of_files;
    list.insert(list.end(), kinds_of_sockets.begin(), kinds_of_sockets.end());
    return list;
  }();
  return kinds;
}

}  // namespace testing
