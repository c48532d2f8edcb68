// SPDX-License-Identifier: MIT
// A connection of two stream sockets: packets in flight, bytes to be read, and how it ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <motet/base/clock.hpp>
#include <motet/runtime/backend.hpp>
#include <optional>
#include <string>

#include "testing/net/machine.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class network;

class connection : public std::enable_shared_from_this<connection> {
 public:
  /// The ends are 0, the client, and 1. Use make(): the network must know it.
  connection(network& inside, const residence& client, const place& client_name,
             const residence& server, const place& server_name);
  static std::shared_ptr<connection> make(network& inside, const residence& client,
                                          const place& client_name, const residence& server,
                                          const place& server_name);

  bool is_alive(int side) const noexcept { return end_of(side).open && end_of(side).home.alive(); }
  const place& name(int side) const noexcept { return end_of(side).name; }
  /// Returns: the operation's result; nothing if it must wait.
  std::optional<std::int32_t> receive(int side, const operation& op);
  std::optional<std::int32_t> send(int side, const operation& op);
  short readiness(int side) const;
  void shutdown(int side, int direction);
  /// Nothing of this end is used any more.
  void close(int side);
  /// The same; the peer is reset.
  void abort(int side);
  /// The same; the peer hears nothing.
  void vanish(int side);
  /// What `side` sends arrives at `instant` at the earliest.
  void send_not_before(int side, clock::time_point instant) noexcept;
  /// What a partition has held back goes on its way again.
  void resume();

 private:
  struct segment {
    std::string bytes = {};
    bool is_last = false;
    bool is_reset = false;
    clock::time_point arrival{};
  };

  enum class input { flows, ended, reset };

  struct end {
    residence home;
    place name;
    bool open = true;    // a program has it, or can accept it
    bool writes = true;  // until shutdown(SHUT_WR)
    bool reads = true;   // until shutdown(SHUT_RD)
    input from_peer = input::flows;
    int error = 0;         // for the next call
    std::string received;  // not yet read
    std::deque<segment> under_way;
    std::size_t unread = 0;          // bytes of both
    clock::time_point latest{};      // the last arrival
    clock::time_point busy_until{};  // bytes sent to this end occupy the link
  };

  bool is_reset(int side) const noexcept { return end_of(side).from_peer == input::reset; }
  end& end_of(int side) noexcept { return ends_[static_cast<std::size_t>(side)]; }
  const end& end_of(int side) const noexcept { return ends_[static_cast<std::size_t>(side)]; }
  std::size_t room_at(int side) const noexcept;
  void send_segment(int side, segment packet);
  bool is_held_back(int side) const;
  void deliver(int side);
  void arrive(int side, segment packet);

  network& inside_;
  std::array<end, 2> ends_;
};

}}}  // namespace motet::MOTET_ABI::testing
