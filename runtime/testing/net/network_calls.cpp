// SPDX-License-Identifier: MIT
// See testing/net/network.hpp: sockets, their descriptors and their names.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <motet/sync/time.hpp>
#include <system_error>
#include <utility>

#include "core/thread_state.hpp"
#include "testing/net/datagrams.hpp"
#include "testing/net/network.hpp"
#include "testing/net/stream_socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr int ports = 32'768;  // those that connect() may choose are the upper half

void advance_port(machine& owner) noexcept {
  owner.next_port =
      owner.next_port == UINT16_MAX ? ports : static_cast<std::uint16_t>(owner.next_port + 1);
}

/// Returns: -1 with errno set for minus an errno value; else `result`.
int as_call(std::int32_t result) noexcept {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

}  // namespace

residence network::home_of_caller() {
  const residence& home = present_residence();
  return home.owner != nullptr ? home : first_home();
}

/// An eventfd reserves the number in the process; calls that are not simulated fail on it.
std::int32_t network::open(const residence& home,
                           const std::function<std::unique_ptr<simulated_socket>()>& make) {
  if (!home.alive()) return -ENETDOWN;
  if (home.owner->descriptors >= rules.descriptors) return -EMFILE;
  const int number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (number < 0) {
    on_failure(std::string("a simulated socket needs a descriptor of the process: ") +
               std::system_category().message(errno));
    return -EMFILE;
  }
  handed_over_.erase(number);
  forget(number);  // a descriptor that was closed without notice
  auto made = make();
  made->set_number(++sockets_made_);
  sockets_.emplace(number, std::move(made));
  ++home.owner->descriptors;
  return number;
}

void network::forget(int fd) {
  if (handed_over_.erase(fd) > 0) return;
  const auto found = sockets_.find(fd);
  if (found == sockets_.end()) return;
  simulated_socket& socket = *found->second;
  std::erase_if(bound_, [&](const auto& entry) { return entry.second == &socket; });
  --socket.home().owner->descriptors;
  if (socket.home().alive()) socket.close();
  sockets_.erase(found);
  note_change();
}

int network::socket(int family, int kind) noexcept {
  if (family == AF_INET6) return as_call(-EAFNOSUPPORT);
  if (family != AF_INET) return ::socket(family, kind, 0);
  const residence home = home_of_caller();
  const call_site site = detail::traveller_of(detail::here().running()).site;
  return as_call(open(home, [&]() -> std::unique_ptr<simulated_socket> {
    if ((kind & SOCK_DGRAM) != 0) return std::make_unique<datagrams>(*this, home, site);
    return std::make_unique<stream_socket>(*this, home, site);
  }));
}

int network::bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  const std::optional<place> name = place_of(address, length);
  if (!name.has_value()) return as_call(-EAFNOSUPPORT);
  return as_call(bind_name(*sockets_.at(fd), *name));
}

std::int32_t network::bind_to_any(simulated_socket& socket) {
  return socket.name().port != 0 ? 0 : bind_name(socket, {});
}

std::int32_t network::bind_name(simulated_socket& socket, place name) {
  machine& owner = *socket.home().owner;
  if (!socket.home().alive()) return -ENETDOWN;
  if (socket.name().port != 0) return -EINVAL;
  if (!name.is_any() && !name.is_loopback() && name.address != owner.address) return -EADDRNOTAVAIL;
  if (name.port == 0) {
    const auto is_used = [&](std::uint16_t port) {
      return bound_.contains({socket.kind(), owner.address, port});
    };
    for (int tries = ports; tries > 0 && is_used(owner.next_port); --tries) advance_port(owner);
    name.port = owner.next_port;
    advance_port(owner);
  }
  const bool is_new = bound_.try_emplace({socket.kind(), owner.address, name.port}, &socket).second;
  if (!is_new) return -EADDRINUSE;
  socket.set_name(name);
  return 0;
}

simulated_socket* network::bound_at(int kind, const machine& owner,
                                    const place& name) const noexcept {
  const auto found = bound_.find({kind, owner.address, name.port});
  if (found == bound_.end()) return nullptr;
  const place& own = found->second->name();
  return own.is_any() || own.address == name.address ? found->second : nullptr;
}

simulated_socket* network::listener_at(const machine& owner, const place& name) const noexcept {
  return bound_at(SOCK_STREAM, owner, name);
}

simulated_socket* network::datagrams_at(const machine& owner, const place& name) const noexcept {
  return bound_at(SOCK_DGRAM, owner, name);
}

int network::listen(int fd, int backlog) noexcept {
  simulated_socket& socket = *sockets_.at(fd);
  return as_call(socket.home().alive() ? socket.listen(backlog) : -ENETDOWN);
}

int network::connect_datagrams(int fd, const sockaddr* peer, socklen_t length) noexcept {
  operation op;
  op.kind = verb::connect;
  op.fd = fd;
  op.address = const_cast<sockaddr*>(peer);
  op.length = length;
  return as_call(attempt(op).value_or(-EINVAL));
}

int network::accept_now(int fd, sockaddr* address, socklen_t* length) noexcept {
  operation op;
  op.kind = verb::accept;
  op.fd = fd;
  op.address = address;
  op.address_length = length;
  return as_call(attempt(op).value_or(-EAGAIN));
}

int network::getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  const simulated_socket& socket = *sockets_.at(fd);
  const std::optional<place> peer = socket.peer();
  write_name(peer.has_value() ? socket.name_for(*peer) : socket.name(), address, length);
  return 0;
}

int network::getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  const std::optional<place> peer = sockets_.at(fd)->peer();
  if (!peer.has_value()) return as_call(-ENOTCONN);
  write_name(*peer, address, length);
  return 0;
}

int network::shutdown(int fd, int direction) noexcept {
  simulated_socket& socket = *sockets_.at(fd);
  return as_call(socket.home().alive() ? socket.shutdown(direction) : -ENETDOWN);
}

bool network::has_input(int fd) noexcept {
  const simulated_socket& socket = *sockets_.at(fd);
  return !socket.home().alive() || (socket.readiness() & POLLIN) != 0;
}

void network::await_offload_thread() {
  constexpr clock::duration longest_wait = std::chrono::milliseconds(15);
  const clock::duration wait = choices_.decide_span(choice::offload, {}, longest_wait);
  if (wait > clock::duration(0)) sleep_for(wait);
}

std::optional<std::string> network::address_of(std::string_view host) {
  if (host == "localhost") return "127.0.0.1";
  for (const machine& each : machines_) {
    if (each.name == host) return text_of(each);
  }
  return std::nullopt;
}

}}}  // namespace motet::MOTET_ABI::testing
