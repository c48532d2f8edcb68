// SPDX-License-Identifier: MIT
// See testing/net/network.hpp: machines, decisions, and packets in flight.
#include "testing/net/network.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t first_address = 0x0a000001;  // 10.0.0.1
constexpr clock::duration loopback_latency = 20us;

}  // namespace

std::string text_of(const machine& host) {
  std::string text;
  for (const int shift : {24, 16, 8, 0})
    text += (text.empty() ? "" : ".") + std::to_string(host.address >> shift & 0xff);
  return text;
}

network::network(decisions& choices) : choices_(choices) {
  add("test");
}

machine& network::add(std::string name) {
  const auto address = static_cast<std::uint32_t>(first_address + machines_.size());
  return machines_.emplace_back(machine{.name = std::move(name), .address = address});
}

machine* network::machine_at(std::uint32_t address, machine& asking) noexcept {
  if (place{address, 0}.is_loopback()) return &asking;
  const std::uint32_t index = address - first_address;
  return address >= first_address && index < machines_.size() ? &machines_[index] : nullptr;
}

void network::crash(machine& crashed, bool resets) {
  for (simulated_socket* const each : sockets_of({&crashed, crashed.life})) each->crash(resets);
  crashed.up = false;
  any_crashed_ = true;
  std::erase_if(bound_, [&](const auto& entry) { return entry.first.address == crashed.address; });
  crashed.quiet_until = clock::now() + 1ms;
  schedule(crashed.quiet_until, [this] { note_change(); });
}

void network::cut(const machine& source, const machine& target) {
  cut_.insert({source.address, target.address});
}

void network::heal() {
  cut_.clear();
  resume();
}

void network::resume() {
  for (const auto& each : connections_) {
    if (const auto held = each.lock()) held->resume();
  }
}

void network::keep(const std::shared_ptr<connection>& link) {
  if (connections_.size() >= enough_connections_) {
    std::erase_if(connections_, [](const auto& each) { return each.expired(); });
    enough_connections_ = 2 * connections_.size() + 64;
  }
  connections_.push_back(link);
}

std::vector<simulated_socket*> network::sockets_of(const residence& home) const {
  std::vector<simulated_socket*> result;
  for (const auto& [fd, each] : sockets_) {
    if (each->home() == home) result.push_back(each.get());
  }
  std::sort(result.begin(), result.end(),
            [](const auto* one, const auto* other) { return one->number() < other->number(); });
  return result;
}

bool network::is_cut(const machine& source, const machine& target) const {
  return cut_.contains({source.address, target.address});
}

std::optional<call_site> network::left_open(const residence& home) const {
  const std::vector<simulated_socket*> left = sockets_of(home);
  if (left.empty()) return std::nullopt;
  return left.front()->spawn_site();
}

clock::duration network::latency(const machine& source, const machine& target) {
  if (&source == &target) return loopback_latency;
  return choices_.decide_span(choice::latency, rules.shortest_latency, rules.longest_latency);
}

clock::duration network::time_for(std::size_t bytes) const {
  if (rules.bytes_per_second == 0) return 0ns;
  return std::chrono::nanoseconds(bytes * std::nano::den / rules.bytes_per_second);
}

std::size_t network::part_of(std::size_t most) {
  if (!rules.short_transfers || most < 2 || choices_.decide(choice::transfer, 2) == 0) return most;
  return 1 + choices_.decide(choice::transfer, static_cast<std::uint32_t>(most));
}

/// The highest numbers make it happen, so that a log of zeros is one without faults.
bool network::happens(double probability) {
  constexpr std::uint32_t fine = 1'000;
  if (probability <= 0) return false;
  const auto unlucky = static_cast<std::uint32_t>(std::lround(std::min(probability, 1.0) * fine));
  return choices_.decide(choice::fault, fine) >= fine - unlucky;
}

void network::schedule(clock::time_point due, std::function<void()> event) {
  events_.emplace(due, std::move(event));
}

clock::time_point network::next_event() const noexcept {
  return events_.empty() ? clock::time_point::max() : events_.begin()->first;
}

void network::pass_to(clock::time_point now) {
  while (!events_.empty() && events_.begin()->first <= now)
    events_.extract(events_.begin()).mapped()();
}

bool network::submit(operation& op, completions& results) {
  const std::optional<std::int32_t> result = attempt(op);
  if (result.has_value()) {
    op.result = *result;
    return true;
  }
  waits_.push_back({&op, &results});
  return false;
}

bool network::cancel(operation& op) {
  const auto found = std::find_if(waits_.begin(), waits_.end(),
                                  [&](const waiting_operation& each) { return each.op == &op; });
  if (found == waits_.end()) return false;
  op.cancelling = true;
  op.result = -ECANCELED;
  completions& results = *found->results;
  waits_.erase(found);
  const auto socket = sockets_.find(op.fd);
  if (socket != sockets_.end()) socket->second->leave(op);
  results.push(op);
  return true;
}

/// One operation may make another one possible.
void network::complete() {
  while (std::exchange(is_changed_, false)) {
    for (std::size_t i = 0; i < waits_.size();) {
      operation& op = *waits_[i].op;
      const std::optional<std::int32_t> result = is_quiet(op.fd) ? std::nullopt : attempt(op);
      if (!result.has_value()) {
        ++i;
        continue;
      }
      op.result = *result;
      waits_[i].results->push(op);
      waits_.erase(waits_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

/// Whether the fibers of a host that has just crashed may still wait: their cancellation ends that.
bool network::is_quiet(int fd) const {
  const auto found = sockets_.find(fd);
  if (found == sockets_.end() || found->second->home().alive()) return false;
  return clock::now() < found->second->home().owner->quiet_until;
}

std::optional<std::int32_t> network::attempt(operation& op) {
  const auto found = sockets_.find(op.fd);
  if (found == sockets_.end()) return -EBADF;
  simulated_socket& socket = *found->second;
  if (!socket.home().alive()) return op.kind == verb::accept ? -EINVAL : -ENETDOWN;
  if (op.kind != verb::wait_fd) {
    const std::optional<std::int32_t> result = socket.attempt(op);
    const bool waits_not = (op.flags & MSG_DONTWAIT) != 0 && op.kind != verb::accept;
    return !result.has_value() && waits_not ? -EAGAIN : result;
  }
  constexpr int always_reported = POLLERR | POLLHUP;
  const int events = socket.readiness() & (op.flags | always_reported);
  if (events == 0) return std::nullopt;
  return events;
}

}}}  // namespace motet::MOTET_ABI::testing
