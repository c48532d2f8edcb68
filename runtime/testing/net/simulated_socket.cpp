// SPDX-License-Identifier: MIT
// See testing/net/simulated_socket.hpp.
#include "testing/net/simulated_socket.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <motet/fibers/local.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace testing {

residence& present_residence() {
  static const fiber_local<residence> value(inherited);
  return value.get();
}

place simulated_socket::name_for(const place& peer) const noexcept {
  place name = name_;
  if (name.is_any()) name.address = peer.is_loopback() ? loopback_address : home_.owner->address;
  return name;
}

std::optional<place> place_of(const sockaddr* address, socklen_t length) noexcept {
  if (length < sizeof(sockaddr_in) || address->sa_family != AF_INET) return std::nullopt;
  sockaddr_in v4{};
  std::memcpy(&v4, address, sizeof v4);
  return place{ntohl(v4.sin_addr.s_addr), ntohs(v4.sin_port)};
}

void write_name(const place& name, sockaddr* address, socklen_t* length) noexcept {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(name.address);
  v4.sin_port = htons(name.port);
  if (address == nullptr || length == nullptr) return;
  std::memcpy(address, &v4, std::min<std::size_t>(*length, sizeof v4));
  *length = sizeof v4;
}

namespace {

bool has_vectors(verb kind) noexcept {
  return kind == verb::readv || kind == verb::writev || kind == verb::preadv ||
         kind == verb::pwritev;
}

/// The buffers of an operation that reads or writes.
class buffers {
 public:
  explicit buffers(const operation& op) noexcept : single_{op.buffer, op.length} {
    if (op.kind == verb::recvmsg || op.kind == verb::sendmsg) {
      all_ = {op.message->msg_iov, op.message->msg_iovlen};
    } else if (has_vectors(op.kind)) {
      all_ = {op.vectors, op.length};
    } else {
      all_ = {&single_, 1};
    }
  }
  buffers(const buffers&) = delete;
  buffers& operator=(const buffers&) = delete;
  ~buffers() = default;

  std::span<const iovec> all() const noexcept { return all_; }

 private:
  const iovec single_;
  std::span<const iovec> all_;
};

}  // namespace

std::size_t room_of(const operation& op) noexcept {
  const buffers target(op);
  std::size_t size = 0;
  for (const iovec& each : target.all()) size += each.iov_len;
  return size;
}

void scatter(const operation& op, std::string_view bytes) noexcept {
  const buffers target(op);
  for (const iovec& each : target.all()) {
    const std::size_t size = std::min(each.iov_len, bytes.size());
    if (size > 0) std::memcpy(each.iov_base, bytes.data(), size);
    bytes.remove_prefix(size);
  }
}

std::string gathered(const operation& op, std::size_t limit) {
  const buffers source(op);
  std::string bytes;
  for (const iovec& each : source.all())
    bytes.append(static_cast<const char*>(each.iov_base),
                 std::min(each.iov_len, limit - bytes.size()));
  return bytes;
}

}}}  // namespace motet::MOTET_ABI::testing
