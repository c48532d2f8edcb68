// SPDX-License-Identifier: MIT
// What stream sockets and datagram sockets of a simulated network have in common.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/runtime/backend.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "testing/net/machine.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class network;

/// Its functions return 0, or minus an errno value, if nothing else is said.
class simulated_socket {
 public:
  simulated_socket(network& inside, const residence& home, call_site spawn_site) noexcept
      : inside_(inside), home_(home), spawn_site_(spawn_site) {}
  simulated_socket(const simulated_socket&) = delete;
  simulated_socket& operator=(const simulated_socket&) = delete;
  virtual ~simulated_socket() = default;

  virtual int kind() const noexcept = 0;
  virtual std::int32_t listen(int backlog) = 0;
  virtual std::int32_t shutdown(int direction) = 0;
  /// Returns: the peer's address; nothing without a peer.
  virtual std::optional<place> peer() const = 0;
  /// Returns: the events of poll(2) that hold now.
  virtual short readiness() const = 0;
  /// Returns: the operation's result; nothing if it must wait.
  virtual std::optional<std::int32_t> attempt(operation& op) = 0;
  /// An operation that must wait was cancelled.
  virtual void leave(const operation&) {}
  /// The program closes it.
  virtual void close() = 0;
  /// Its machine has crashed. If `resets`, the peers hear of it.
  virtual void crash(bool resets) = 0;

  network& inside() const noexcept { return inside_; }
  const residence& home() const noexcept { return home_; }
  call_site spawn_site() const noexcept { return spawn_site_; }
  const place& name() const noexcept { return name_; }
  void set_name(const place& name) noexcept { name_ = name; }
  /// Returns: its name as `peer` sees it. A socket that is bound to every address has that of its
  /// machine, or the loopback address.
  place name_for(const place& peer) const noexcept;
  /// Sockets have numbers of their own, because descriptors depend on the rest of the process.
  std::uint64_t number() const noexcept { return number_; }
  void set_number(std::uint64_t number) noexcept { number_ = number; }

 private:
  network& inside_;
  const residence home_;
  const call_site spawn_site_;  // of the fiber that made it
  place name_;                  // port 0: it is not bound
  std::uint64_t number_ = 0;
};

/// The address of a socket call, which must be of IPv4.
std::optional<place> place_of(const sockaddr* address, socklen_t length) noexcept;
/// As getsockname(2): cuts the address to `length`, and sets that to its whole length.
void write_name(const place& name, sockaddr* address, socklen_t* length) noexcept;

/// Returns: bytes for which the buffers of a receiving operation have room.
std::size_t room_of(const operation& op) noexcept;
/// Fills the buffers of a receiving operation, which have the room.
void scatter(const operation& op, std::string_view bytes) noexcept;
/// Returns: what a sending operation sends, at most `limit` bytes.
std::string gathered(const operation& op, std::size_t limit);

}}}  // namespace motet::MOTET_ABI::testing
