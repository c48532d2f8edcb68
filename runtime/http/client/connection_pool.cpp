// SPDX-License-Identifier: MIT
// See http/client/connection_pool.hpp.
#include "http/client/connection_pool.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <motet/cancellation/cancel.hpp>
#include <motet/net/tcp_stream.hpp>
#include <stdexcept>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// Whether the server has left an unused connection, or says what nobody has asked for: a farewell
/// of TLS, for example.
bool is_over(const connection& unused) noexcept {
  char byte = 0;
  const ssize_t size = ::recv(unused.stream.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return size >= 0 || errno != EAGAIN;
}

}  // namespace

client::pool::pool(const client_options& how) : how_(how), secure_(how.trusted_file) {
  if (how.connections_per_host == 0)
    throw std::invalid_argument("client: connections_per_host must be at least 1");
}

void client::pool::lease::close() noexcept {
  made_.reset();
  if (of_ == nullptr) return;
  --of_->leases;
  std::exchange(of_, nullptr)->places.release();
}

void client::pool::lease::give_back() {
  made_->unused_since = clock::now();
  of_->unused.push_front(std::move(made_));
  close();
}

client::pool::lease client::pool::take(const url& to, bool fresh) {
  drop_old();
  host& of = hosts_.try_emplace(to.origin(), how_.connections_per_host).first->second;
  ++of.leases;
  try {
    of.places.acquire();
  } catch (...) {
    --of.leases;
    throw;
  }
  lease taken(of);
  if (!fresh) taken.made_ = take_unused(of);
  // The new connection replaces the oldest idle one if the limit is reached.
  if (taken.made_ == nullptr && of.unused.size() + of.leases > how_.connections_per_host &&
      !of.unused.empty()) {
    of.unused.pop_back();
  }
  if (taken.made_ == nullptr) taken.made_ = connect(to);
  return taken;
}

/// Closes unusable connections. Returns: a usable one, or null.
std::unique_ptr<connection> client::pool::take_unused(host& of) const {
  while (!of.unused.empty()) {
    std::unique_ptr<connection> found = std::move(of.unused.front());
    of.unused.pop_front();
    if (clock::now() - found->unused_since <= how_.idle && !is_over(*found)) return found;
  }
  return nullptr;
}

/// Closes connections that have been unused for too long, to whatever host.
void client::pool::drop_old() {
  const clock::time_point now = clock::now();
  if (now - dropped_old_at_ < how_.idle / 4) return;
  dropped_old_at_ = now;
  for (auto& [name, each] : hosts_) {
    while (!each.unused.empty() && now - each.unused.back()->unused_since > how_.idle) {
      each.unused.pop_back();
    }
  }
  std::erase_if(hosts_, [](const auto& each) {
    return each.second.leases == 0 && each.second.unused.empty();
  });
}

std::unique_ptr<connection> client::pool::connect(const url& to) {
  return with_timeout(how_.connect, [&] {
    net::tcp_stream made = net::tcp_stream::connect(to.host, to.port);
    return std::make_unique<connection>(to.is_secure ? secure_.connect(std::move(made), to.host)
                                                     : detail::any_stream(std::move(made)),
                                        std::max(how_.head, std::size_t{16} * 1024) + 4);
  });
}

}}}  // namespace motet::MOTET_ABI::http
