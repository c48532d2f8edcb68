// SPDX-License-Identifier: MIT
// See testing/net/connection.hpp. As TCP, but a segment is never lost: what a partition holds back
// arrives when it is healed, as if it had been sent again.
#include "testing/net/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "testing/net/network.hpp"
#include "testing/net/simulated_socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

connection::connection(network& inside, const residence& client, const place& client_name,
                       const residence& server, const place& server_name)
    : inside_(inside) {
  end_of(0).home = client;
  end_of(0).name = client_name;
  end_of(1).home = server;
  end_of(1).name = server_name;
}

std::shared_ptr<connection> connection::make(network& inside, const residence& client,
                                             const place& client_name, const residence& server,
                                             const place& server_name) {
  auto result = std::make_shared<connection>(inside, client, client_name, server, server_name);
  inside.keep(result);
  return result;
}

/// Bytes that have arrived can be read even if the peer has reset the connection since.
std::optional<std::int32_t> connection::receive(int side, const operation& op) {
  end& local = end_of(side);
  if (!local.received.empty()) {
    const std::size_t most = std::min(room_of(op), local.received.size());
    const std::size_t size = inside_.part_of(most);
    scatter(op, std::string_view(local.received).substr(0, size));
    if ((op.flags & MSG_PEEK) == 0) {
      local.received.erase(0, size);
      local.unread -= size;
      inside_.note_change();
    }
    return static_cast<std::int32_t>(size);
  }
  if (local.error != 0) return -std::exchange(local.error, 0);
  if (local.from_peer != input::flows || !local.reads || room_of(op) == 0) return 0;
  return std::nullopt;
}

std::optional<std::int32_t> connection::send(int side, const operation& op) {
  end& local = end_of(side);
  if (local.error != 0) return -std::exchange(local.error, 0);
  if (is_reset(side) || !local.writes) return -EPIPE;
  const std::size_t size = room_of(op);
  if (size == 0) return 0;
  const std::size_t room = room_at(1 - side);
  if (room == 0) return std::nullopt;
  if (inside_.happens(inside_.rules.resets)) {
    send_segment(side, {.is_reset = true});
    local.from_peer = input::reset;
    inside_.note_change();
    return -ECONNRESET;
  }
  const std::size_t part = inside_.part_of(std::min(room, size));
  send_segment(side, {.bytes = gathered(op, part)});
  return static_cast<std::int32_t>(part);
}

std::size_t connection::room_at(int side) const noexcept {
  const std::size_t unread = end_of(side).unread;
  return unread < inside_.rules.window ? inside_.rules.window - unread : 0;
}

short connection::readiness(int side) const {
  const end& local = end_of(side);
  const bool is_over = local.from_peer != input::flows || !local.reads;
  const bool is_lost = is_reset(side) || (is_over && !local.writes);
  int events = local.error != 0 ? POLLIN | POLLOUT | POLLERR : 0;
  if (!local.received.empty() || is_over) events |= POLLIN;
  if (is_reset(side) || !local.writes || room_at(1 - side) > 0) events |= POLLOUT;
  if (is_over) events |= POLLRDHUP;
  if (is_lost) events |= POLLHUP;
  return static_cast<short>(events);
}

void connection::shutdown(int side, int direction) {
  end& local = end_of(side);
  if (direction != SHUT_WR) local.reads = false;
  if (direction != SHUT_RD && std::exchange(local.writes, false) && !is_reset(side))
    send_segment(side, {.is_last = true});
  inside_.note_change();
}

/// Unread bytes are lost, which the peer learns by a reset. Source: RFC 2525, 2.17.
void connection::close(int side) {
  end& local = end_of(side);
  if (!local.received.empty()) return abort(side);
  if (!is_reset(side) && std::exchange(local.writes, false)) send_segment(side, {.is_last = true});
  vanish(side);
}

void connection::abort(int side) {
  if (!is_reset(side)) send_segment(side, {.is_reset = true});
  end_of(side).from_peer = input::reset;
  vanish(side);
}

void connection::vanish(int side) {
  end& local = end_of(side);
  local.open = false;
  local.writes = false;
  local.received.clear();
}

void connection::send_not_before(int side, clock::time_point instant) noexcept {
  end& peer = end_of(1 - side);
  peer.latest = std::max(peer.latest, instant);
}

/// A byte takes its time on the link, and then the latency; no segment overtakes another.
void connection::send_segment(int side, segment packet) {
  const end& local = end_of(side);
  end& peer = end_of(1 - side);
  const clock::time_point now = clock::now();
  peer.busy_until = std::max(now, peer.busy_until) + inside_.time_for(packet.bytes.size());
  packet.arrival =
      std::max(peer.latest, peer.busy_until + inside_.latency(*local.home.owner, *peer.home.owner));
  peer.latest = packet.arrival;
  peer.unread += packet.bytes.size();
  const clock::time_point arrival = packet.arrival;
  peer.under_way.push_back(std::move(packet));
  inside_.schedule(arrival, [self = shared_from_this(), side] { self->deliver(1 - side); });
}

void connection::deliver(int side) {
  end& local = end_of(side);
  while (!local.under_way.empty() && local.under_way.front().arrival <= clock::now()) {
    if (is_held_back(side)) return;
    segment packet = std::move(local.under_way.front());
    local.under_way.pop_front();
    arrive(side, std::move(packet));
  }
}

/// A machine that is down loses what arrives, and a machine that runs sends it again.
bool connection::is_held_back(int side) const {
  const machine& receiver = *end_of(side).home.owner;
  return !receiver.up || inside_.is_cut(*end_of(1 - side).home.owner, receiver);
}

/// A machine that runs, but has nothing of the connection any more, answers with a reset.
void connection::arrive(int side, segment packet) {
  end& local = end_of(side);
  if (!local.open || !local.home.alive()) {
    const bool is_unknown = !local.home.alive() || !packet.bytes.empty();
    if (is_unknown && !packet.is_reset) send_segment(side, {.is_reset = true});
    return;
  }
  if (local.from_peer == input::reset) return;
  if (packet.is_reset) {
    if (local.from_peer == input::flows) local.error = ECONNRESET;
    local.from_peer = input::reset;
  }
  local.received += packet.bytes;
  if (packet.is_last) local.from_peer = input::ended;
  inside_.note_change();
}

/// A reset is not sent again, and neither is anything by a machine that has lost its memory.
void connection::resume() {
  const clock::time_point now = clock::now();
  for (const int side : {0, 1}) {
    end& local = end_of(side);
    if (local.under_way.empty() || local.under_way.front().arrival > now || is_held_back(side))
      continue;
    const bool is_sent_again = end_of(1 - side).home.alive();
    std::erase_if(local.under_way, [&](const segment& each) {
      return each.arrival <= now && (each.is_reset || !is_sent_again);
    });
    const clock::time_point arrival =
        now + inside_.latency(*end_of(1 - side).home.owner, *local.home.owner);
    for (segment& each : local.under_way) each.arrival = std::max(each.arrival, arrival);
    local.latest = std::max(local.latest, arrival);
    inside_.schedule(arrival, [self = shared_from_this(), side] { self->deliver(side); });
  }
}

}}}  // namespace motet::MOTET_ABI::testing
