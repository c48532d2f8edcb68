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

/// Returns: the endpoints with the families in turns, beginning with the family of the first; in
///          each family in their order.
std::vector<endpoint> in_turns(std::span<const endpoint> found);

/// Tries `peers` in their order: each when the one before has failed, or has not answered for 250
/// ms. The first connection counts, and the tries that are not over are given up. Returns: the
/// connection; none if all have failed: then `error` is what the last one has failed
///          by, and `failed` where.
/// Throws: a pending interruption; std::bad_alloc, stack_unavailable.
tcp_stream connect_to_first(std::span<const endpoint> peers, std::error_code& error,
                            endpoint& failed);

}}}  // namespace motet::MOTET_ABI::net
