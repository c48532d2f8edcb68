// SPDX-License-Identifier: MIT
// See io/net/happy_eyeballs.hpp.
#include "io/net/happy_eyeballs.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/group.hpp>
#include <motet/sync/channel.hpp>
#include <optional>
#include <utility>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

using namespace std::chrono_literals;

/// Source: RFC 8305, 8, Connection Attempt Delay.
constexpr auto head_start = 250ms;

/// How a try has ended.
struct outcome {
  tcp_stream stream;
  std::error_code error;
  std::size_t index;
};

using outcomes = local::channel<outcome>;

void try_one(std::span<const endpoint> peers, std::size_t index, outcomes& results) {
  outcome result{{}, {}, index};
  result.stream = tcp_stream::connect(peers[index], result.error);
  detail::here().deliver();
  results.push(std::move(result));
}

/// Returns: the next outcome; nothing if it is time for the next try.
std::optional<outcome> await_outcome(outcomes& results, bool all_begun) {
  if (all_begun) return results.pop();
  auto result = move_on_after(head_start, [&] { return results.pop(); });
  return result ? std::move(*result) : std::nullopt;
}

}  // namespace

std::vector<endpoint> interleaved_families(std::span<const endpoint> addresses) {
  std::vector<endpoint> order;
  std::vector<endpoint> rest;
  for (const endpoint& address : addresses) {
    const bool first = address.address()->sa_family == addresses.front().address()->sa_family;
    (first ? order : rest).push_back(address);
  }
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const std::size_t index = std::min(2 * i + 1, order.size());
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(index), rest[i]);
  }
  return order;
}

tcp_stream connect_to_first(std::span<const endpoint> peers, std::error_code& error,
                            endpoint& last_peer) {
  outcomes results(peers.size());
  group tries;  // declared last: its fibers use what is above
  std::size_t next_peer = 0;
  for (std::size_t completions = 0; completions < peers.size();) {
    if (next_peer < peers.size()) {
      tries.spin([&results, peers, index = next_peer] { try_one(peers, index, results); });
      ++next_peer;
    }
    std::optional<outcome> result = await_outcome(results, next_peer == peers.size());
    if (!result) continue;
    ++completions;
    error = result->error;
    if (!error) return std::move(result->stream);
    last_peer = peers[result->index];
  }
  return {};
}

}}}  // namespace motet::MOTET_ABI::net
