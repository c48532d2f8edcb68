// SPDX-License-Identifier: MIT
// A stream socket of a simulated network: it listens, or connects and has a connection.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "testing/net/connection.hpp"
#include "testing/net/simulated_socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// An attempt to connect, which may go on when its socket is gone.
struct connecting {
  residence home;
  place name;  // of the client
  place target;
  int lost = 0;               // handshakes that were not answered
  bool is_abandoned = false;  // by its socket
  std::optional<std::int32_t> result;
  std::shared_ptr<connection> half_open;  // by the server, whose answer may be lost
  std::shared_ptr<connection> link;
};

class stream_socket final : public simulated_socket {
 public:
  using simulated_socket::simulated_socket;

  /// An accepted one.
  void adopt(std::shared_ptr<connection> link, int side);
  bool listens() const noexcept { return backlog_ > 0; }
  /// For a client's handshake. Returns: false if the backlog is full.
  bool admit(const std::shared_ptr<connection>& link);

  int kind() const noexcept override;
  std::int32_t listen(int backlog) override;
  std::int32_t shutdown(int direction) override;
  std::optional<place> peer() const override;
  short readiness() const override;
  std::optional<std::int32_t> attempt(operation& op) override;
  void leave(const operation& op) override;
  void close() override;
  void crash(bool resets) override;

 private:
  std::optional<std::int32_t> connect(const operation& op);
  std::optional<std::int32_t> accept(const operation& op);
  void abandon_attempt(bool resets);
  void stop_listening(bool resets);

  int backlog_ = 0;                                  // 0: it does not listen
  std::deque<std::shared_ptr<connection>> pending_;  // to be accepted
  std::shared_ptr<connecting> attempt_;              // null: it does not connect
  std::shared_ptr<connection> connection_;           // null: it is not connected
  int side_ = 0;
};

}}}  // namespace motet::MOTET_ABI::testing
