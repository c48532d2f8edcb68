// SPDX-License-Identifier: MIT
// A datagram socket of a simulated network. Datagrams are lost, come twice and overtake each other.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "testing/net/simulated_socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class datagrams final : public simulated_socket {
 public:
  using simulated_socket::simulated_socket;

  int kind() const noexcept override;
  std::int32_t listen(int) override;
  std::int32_t shutdown(int) override;
  std::optional<place> peer() const override { return peer_; }
  short readiness() const override;
  std::optional<std::int32_t> attempt(operation& op) override;
  void close() override {}
  void crash(bool) override {}

 private:
  struct packet {
    place sender;
    std::string bytes;
  };

  std::int32_t connect(const operation& op);
  std::optional<std::int32_t> receive(operation& op);
  std::int32_t send(const operation& op);
  void send_copy(const place& target, const packet& datagram);
  void arrive(const packet& datagram);
  void learn_refusal(const place& target);

  std::optional<place> peer_;
  std::deque<packet> received_;
  bool is_refused_ = false;  // for the next call
};

}}}  // namespace motet::MOTET_ABI::testing
