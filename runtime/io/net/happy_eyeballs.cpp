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
  std::size_t place;
};

using outcomes = local::channel<outcome>;

void try_one(std::span<const endpoint> peers, std::size_t place, outcomes& done) {
  outcome mine{{}, {}, place};
  mine.stream = tcp_stream::connect(peers[place], mine.error);
  detail::here().deliver();
  done.push(std::move(mine));
}

/// Returns: the next outcome; nothing if it is time for the next try.
std::optional<outcome> await_outcome(outcomes& done, bool all_begun) {
  if (all_begun) return done.pop();
  auto within = move_on_after(head_start, [&] { return done.pop(); });
  return within ? std::move(*within) : std::nullopt;
}

}  // namespace

std::vector<endpoint> in_turns(std::span<const endpoint> found) {
  std::vector<endpoint> order;
  std::vector<endpoint> others;
  for (const endpoint& each : found) {
    const bool first = each.address()->sa_family == found.front().address()->sa_family;
    (first ? order : others).push_back(each);
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::size_t place = std::min(2 * i + 1, order.size());
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), others[i]);
  }
  return order;
}

tcp_stream connect_to_first(std::span<const endpoint> peers, std::error_code& error,
                            endpoint& failed) {
  outcomes done(peers.size());
  group tries;  // declared last: its fibers use what is above
  std::size_t begun = 0;
  for (std::size_t over = 0; over < peers.size();) {
    if (begun < peers.size()) {
      tries.spin([&done, peers, place = begun] { try_one(peers, place, done); });
      ++begun;
    }
    std::optional<outcome> ended = await_outcome(done, begun == peers.size());
    if (!ended) continue;
    ++over;
    error = ended->error;
    if (!error) return std::move(ended->stream);
    failed = peers[ended->place];
  }
  return {};
}

}}}  // namespace motet::MOTET_ABI::net
