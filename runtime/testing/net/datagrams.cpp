// SPDX-License-Identifier: MIT
// See testing/net/datagrams.hpp.
#include "testing/net/datagrams.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "testing/net/network.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr std::size_t largest = 65'507;  // Source: RFC 768 and RFC 791
constexpr std::size_t most_received = 256;

}  // namespace

int datagrams::kind() const noexcept {
  return SOCK_DGRAM;
}

std::int32_t datagrams::listen(int) {
  return -EOPNOTSUPP;
}

std::int32_t datagrams::shutdown(int) {
  return peer_.has_value() ? 0 : -ENOTCONN;
}

short datagrams::readiness() const {
  const int error = is_refused_ ? POLLERR : 0;
  return static_cast<short>(POLLOUT | error | (received_.empty() && !is_refused_ ? 0 : POLLIN));
}

std::optional<std::int32_t> datagrams::attempt(operation& op) {
  switch (op.kind) {
    case verb::connect:
      return connect(op);
    case verb::read:
    case verb::readv:
    case verb::recv:
    case verb::recvmsg:
      if (std::exchange(is_refused_, false)) return -ECONNREFUSED;
      return receive(op);
    case verb::write:
    case verb::writev:
    case verb::send:
    case verb::sendmsg:
      if (std::exchange(is_refused_, false)) return -ECONNREFUSED;
      return send(op);
    default:
      return -EOPNOTSUPP;
  }
}

std::int32_t datagrams::connect(const operation& op) {
  peer_.reset();
  if (op.address->sa_family == AF_UNSPEC) return 0;
  peer_ = place_of(op.address, op.length);
  return peer_.has_value() ? inside().bind_to_any(*this) : -EAFNOSUPPORT;
}

std::optional<std::int32_t> datagrams::receive(operation& op) {
  if (received_.empty()) return std::nullopt;
  const packet datagram = received_.front();
  if ((op.flags & MSG_PEEK) == 0) received_.pop_front();
  const std::size_t size = std::min(room_of(op), datagram.bytes.size());
  scatter(op, std::string_view(datagram.bytes).substr(0, size));
  if (op.kind == verb::recvmsg) {
    msghdr& message = *op.message;
    write_name(datagram.sender, static_cast<sockaddr*>(message.msg_name), &message.msg_namelen);
    message.msg_controllen = 0;
    message.msg_flags = size < datagram.bytes.size() ? MSG_TRUNC : 0;
  }
  return static_cast<std::int32_t>(size);
}

std::int32_t datagrams::send(const operation& op) {
  std::optional<place> target = peer_;
  if (op.kind == verb::sendmsg && op.message->msg_name != nullptr)
    target = place_of(static_cast<const sockaddr*>(op.message->msg_name), op.message->msg_namelen);
  if (!target.has_value()) return -EDESTADDRREQ;
  packet datagram{{}, gathered(op, largest + 1)};
  if (datagram.bytes.size() > largest) return -EMSGSIZE;
  if (const std::int32_t error = inside().bind_to_any(*this); error != 0) return error;
  datagram.sender = name_for(*target);
  send_copy(*target, datagram);
  if (inside().happens(inside().rules.duplicates)) send_copy(*target, datagram);
  return static_cast<std::int32_t>(datagram.bytes.size());
}

void datagrams::send_copy(const place& target, const packet& datagram) {
  machine& source_machine = *home().owner;
  machine* const target_machine = inside().machine_at(target.address, source_machine);
  if (target_machine == nullptr || inside().happens(inside().rules.losses)) return;
  const clock::time_point arrival = clock::now() + inside().time_for(datagram.bytes.size()) +
                                    inside().latency(source_machine, *target_machine);
  inside().schedule(arrival, [&source_machine, target_machine, target, datagram,
                              &network = inside()] {
    if (!target_machine->up || network.is_cut(source_machine, *target_machine)) return;
    auto* const receiver = static_cast<datagrams*>(network.datagrams_at(*target_machine, target));
    if (receiver != nullptr) return receiver->arrive(datagram);
    auto* const sender =
        static_cast<datagrams*>(network.datagrams_at(source_machine, datagram.sender));
    if (sender != nullptr && !network.is_cut(*target_machine, source_machine))
      sender->learn_refusal(target);
  });
}

/// Only a connected socket learns that nobody receives. Source: udp(7), ERRORS.
void datagrams::learn_refusal(const place& target) {
  is_refused_ = is_refused_ || peer_ == target;
  inside().note_change();
}

/// A connected socket receives from its peer alone.
void datagrams::arrive(const packet& datagram) {
  const bool is_expected = !peer_.has_value() || *peer_ == datagram.sender;
  if (!is_expected || received_.size() >= most_received) return;
  received_.push_back(datagram);
  inside().note_change();
}

}}}  // namespace motet::MOTET_ABI::testing
