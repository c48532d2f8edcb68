// SPDX-License-Identifier: MIT
// From the name of a host to its addresses, by the system's resolver.
#pragma once

#include <cstdint>
#include <motet/net/endpoint.hpp>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace dns {

/// Resolves `host`, a name or a numeric address. The port is given as a number, or as a TCP service
/// ("https", "8080"). A name is looked up on another thread; an interruption does not wait for that
/// thread. A numeric address needs no other thread.
/// Returns: at least one endpoint; the first is the one to try first.
/// Switchpoint.
/// Throws: std::invalid_argument for a host or a service that is empty or contains a NUL, or a
///         number that is not a port; a pending interruption; std::system_error,
///         "resolve example.org: ...". Its code is the result of getaddrinfo(3), or the errno value
///         behind EAI_SYSTEM; it equals std::errc::resource_unavailable_try_again if a later
///         attempt may succeed.
std::vector<net::endpoint> resolve(std::string_view host, std::uint16_t port);
std::vector<net::endpoint> resolve(std::string_view host, std::string_view service);

}}}  // namespace motet::MOTET_ABI::dns
