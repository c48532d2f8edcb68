// SPDX-License-Identifier: MIT
// Connecting to a host that has several addresses, of which some may not answer.
// Source: RFC 8305, "Happy Eyeballs".
#pragma once

#include <motet/net/endpoint.hpp>
#include <motet/net/tcp_stream.hpp>
#include <span>
#include <system_error>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Returns: the endpoints with the families interleaved, beginning with the family of the first; in
///          each family in their order.
std::vector<endpoint> interleaved_families(std::span<const endpoint> addresses);

/// Tries `peers` in order: each when the one before has failed, or has not answered for 250 ms. The
/// first connection wins, and the other attempts are cancelled.
/// Returns: the connection; an empty stream if all attempts have failed: then `error` is the last
///          failure, and `last_peer` its peer.
/// Throws: a pending interruption; std::bad_alloc, stack_unavailable.
tcp_stream connect_to_first(std::span<const endpoint> peers, std::error_code& error,
                            endpoint& last_peer);

}}}  // namespace motet::MOTET_ABI::net
