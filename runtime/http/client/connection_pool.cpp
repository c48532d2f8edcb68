// SPDX-License-Identifier: MIT
// See http/client/connection_pool.hpp.
#include "http/client/connection_pool.hpp"

#include <algorithm>
#include <motet/cancellation/cancel.hpp>
#include <motet/net/tcp_stream.hpp>
#include <stdexcept>
#include <utility>

#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// Whether the server has left an unused connection, or says what nobody has asked for: a farewell
/// of TLS, for example.
bool is_over(const connection& candidate) noexcept {
  return detail::sockets::has_input(candidate.stream.native_handle());
}

}  // namespace

client::pool::pool(const client_options& options)
    : options_(options), secure_(options.trusted_file) {
  if (options.connections_per_host == 0)
    throw std::invalid_argument("client: connections_per_host must be at least 1");
}

void client::pool::lease::close() noexcept {
  connection_.reset();
  if (host_ == nullptr) return;
  --host_->leases;
  std::exchange(host_, nullptr)->slots.release();
}

void client::pool::lease::give_back() {
  connection_->unused_since = clock::now();
  host_->idle_connections.push_front(std::move(connection_));
  close();
}

client::pool::lease client::pool::take(const url& target, bool fresh) {
  drop_old();
  host& target_host =
      hosts_.try_emplace(target.origin(), options_.connections_per_host).first->second;
  ++target_host.leases;
  try {
    target_host.slots.acquire();
  } catch (...) {
    --target_host.leases;
    throw;
  }
  lease result(target_host);
  if (!fresh) result.connection_ = take_unused(target_host);
  // The new connection replaces the oldest idle one if the limit is reached.
  if (result.connection_ == nullptr &&
      target_host.idle_connections.size() + target_host.leases > options_.connections_per_host &&
      !target_host.idle_connections.empty()) {
    target_host.idle_connections.pop_back();
  }
  if (result.connection_ == nullptr) result.connection_ = connect(target);
  return result;
}

/// Closes unusable connections. Returns: a usable one, or null.
std::unique_ptr<connection> client::pool::take_unused(host& target_host) const {
  while (!target_host.idle_connections.empty()) {
    std::unique_ptr<connection> candidate = std::move(target_host.idle_connections.front());
    target_host.idle_connections.pop_front();
    if (clock::now() - candidate->unused_since <= options_.idle && !is_over(*candidate))
      return candidate;
  }
  return nullptr;
}

/// Closes connections that have been unused for too long, to whatever host.
void client::pool::drop_old() {
  const clock::time_point present = clock::now();
  if (present - dropped_old_at_ < options_.idle / 4) return;
  dropped_old_at_ = present;
  for (auto& [name, entry] : hosts_) {
    while (!entry.idle_connections.empty() &&
           present - entry.idle_connections.back()->unused_since > options_.idle) {
      entry.idle_connections.pop_back();
    }
  }
  std::erase_if(hosts_, [](const auto& entry) {
    return entry.second.leases == 0 && entry.second.idle_connections.empty();
  });
}

std::unique_ptr<connection> client::pool::connect(const url& target) {
  return with_timeout(options_.connect, [&] {
    net::tcp_stream carrier = net::tcp_stream::connect(target.host, target.port);
    return std::make_unique<connection>(target.is_secure
                                            ? secure_.connect(std::move(carrier), target.host)
                                            : detail::any_stream(std::move(carrier)),
                                        std::max(options_.head, std::size_t{16} * 1024) + 4);
  });
}

}}}  // namespace motet::MOTET_ABI::http
