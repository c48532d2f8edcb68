// SPDX-License-Identifier: MIT
// See http/client/connection_pool.hpp.
#include "http/client/connection_pool.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <motet/cancel.hpp>
#include <motet/net/tcp_stream.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// Whether the server has left an unused connection, or says what nobody has asked for. What comes
/// on a safe one may be meant for TLS alone.
bool is_over(const connection& unused, bool is_safe) noexcept {
  char byte = 0;
  const ssize_t size = ::recv(unused.stream.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size < 0) return errno != EAGAIN;
  return size == 0 || !is_safe;
}

}  // namespace

client::pool::pool(const client_options& how) : how_(how), secure_(how.trusted_file) {}

client::pool::lease::~lease() {
  made_.reset();
  if (of_ != nullptr) of_->places.release();
}

void client::pool::lease::give_back() {
  made_->was_used = true;
  made_->unused_since = clock::now();
  of_->unused.push_front(std::move(made_));
  std::exchange(of_, nullptr)->places.release();
}

client::pool::lease client::pool::take(const url& to, bool fresh) {
  host& of = hosts_.try_emplace(to.origin(), how_.connections_per_host).first->second;
  of.places.acquire();
  lease taken(of);
  if (!fresh) taken.made_ = take_unused(of, to.is_safe);
  if (taken.made_ == nullptr) taken.made_ = connect(to);
  return taken;
}

/// Returns: null if there is none that can be used; those are closed.
std::unique_ptr<connection> client::pool::take_unused(host& of, bool is_safe) const {
  while (!of.unused.empty()) {
    std::unique_ptr<connection> found = std::move(of.unused.front());
    of.unused.pop_front();
    const bool is_old = clock::now() - found->unused_since > how_.idle;
    if (!is_old && !is_over(*found, is_safe)) return found;
  }
  return nullptr;
}

std::unique_ptr<connection> client::pool::connect(const url& to) {
  return with_timeout(how_.connect, [&] {
    net::tcp_stream made = net::tcp_stream::connect(to.host, to.port);
    return std::make_unique<connection>(to.is_safe ? secure_.connect(std::move(made), to.host)
                                                   : detail::any_stream(std::move(made)),
                                        how_.head + 4);
  });
}

}}}  // namespace motet::MOTET_ABI::http
