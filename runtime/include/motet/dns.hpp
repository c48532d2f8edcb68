// SPDX-License-Identifier: MIT
// From the name of a host to its addresses, by the system's resolver.
#pragma once

#include <cstdint>
#include <motet/net/endpoint.hpp>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace dns {

/// Looks up the addresses of `host`, a name or an address in numbers, with a port, or with that of
/// a service for TCP ("https", "8080"). A name is looked up on another thread, which an
/// interruption leaves to itself; numbers need none.
/// Returns: at least one endpoint, the one to try first in front.
/// Switchpoint.
/// Throws: std::system_error, "resolve example.org: ..."; its code is, but for errors of the
///         system, what getaddrinfo(3) returned, and equal to
///         std::errc::resource_unavailable_try_again if it may be otherwise soon; what is pending
///         for this fiber; std::invalid_argument for a host or a service that is empty or contains
///         a NUL, or a number that is no port.
std::vector<net::endpoint> resolve(std::string_view host, std::uint16_t port);
std::vector<net::endpoint> resolve(std::string_view host, std::string_view service);

}}}  // namespace motet::MOTET_ABI::dns
