// SPDX-License-Identifier: MIT
// See testing/net/handshake.hpp.
#include "testing/net/handshake.hpp"

#include <cerrno>
#include <chrono>

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

/// Source: tcp(7), tcp_syn_retries.
constexpr int most_repetitions = 6;
/// A machine that is down does not answer ARP requests.
/// Source: arp(7), mcast_solicit and retrans_time_ms.
constexpr int asks_for_neighbour = 3;

void finish(network& inside, connecting& attempt, std::int32_t result) {
  if (attempt.is_abandoned) return;
  attempt.result = result;
  inside.note_change();
}

void lose(network& inside, const std::shared_ptr<connecting>& attempt, bool is_down) {
  if (attempt->is_abandoned) return;
  const int lost = ++attempt->lost;
  if (is_down && lost >= asks_for_neighbour) return finish(inside, *attempt, -EHOSTUNREACH);
  if (lost > most_repetitions) return finish(inside, *attempt, -ETIMEDOUT);
  inside.schedule(clock::now() + std::chrono::seconds(1 << (lost - 1)),
                  [&inside, attempt] { begin_handshake(inside, attempt); });
}

/// The server's answer arrives, unless it is lost. `link` is null if it refuses. A client that has
/// given up rejects the connection.
void answer(network& inside, const std::shared_ptr<connecting>& attempt, const machine& server,
            const std::shared_ptr<connection>& link) {
  machine& client = *attempt->home.owner;
  if (inside.is_cut(server, client) || !client.up) {
    return lose(inside, attempt, false);
  }
  if (link == nullptr) return finish(inside, *attempt, -ECONNREFUSED);
  if (attempt->is_abandoned || !attempt->home.alive()) return link->abort(0);
  attempt->link = link;
  finish(inside, *attempt, 0);
}

void arrive(network& inside, const std::shared_ptr<connecting>& attempt) {
  if (attempt->is_abandoned) return;
  machine& client = *attempt->home.owner;
  machine* const server = inside.machine_at(attempt->target.address, client);
  const bool is_down = server == nullptr || !server->up;
  if (is_down || inside.is_cut(client, *server) || inside.is_cut(*server, client))
    return lose(inside, attempt, is_down);
  auto* const listener = static_cast<stream_socket*>(inside.listener_at(*server, attempt->target));
  const clock::time_point later = clock::now() + inside.latency(*server, client);
  if (listener == nullptr || !listener->listens()) {
    inside.schedule(later, [&inside, attempt, server] { answer(inside, attempt, *server, {}); });
    return;
  }
  std::shared_ptr<connection> link = attempt->half_open;
  if (link == nullptr || !link->is_alive(1)) {
    link =
        connection::make(inside, attempt->home, attempt->name, listener->home(), attempt->target);
    if (!listener->admit(link)) return lose(inside, attempt, false);
    attempt->half_open = link;
  }
  link->send_not_before(1, later);
  inside.schedule(later,
                  [&inside, attempt, server, link] { answer(inside, attempt, *server, link); });
}

}  // namespace

void begin_handshake(network& inside, const std::shared_ptr<connecting>& attempt) {
  if (attempt->is_abandoned) return;
  machine& client = *attempt->home.owner;
  const machine* const server = inside.machine_at(attempt->target.address, client);
  const clock::duration latency = inside.latency(client, server != nullptr ? *server : client);
  inside.schedule(clock::now() + latency, [&inside, attempt] { arrive(inside, attempt); });
}

}}}  // namespace motet::MOTET_ABI::testing
