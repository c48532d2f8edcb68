// SPDX-License-Identifier: MIT
// Listeners on every address of a name.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <motet/net/dns.hpp>
#include <motet/net/tcp_listener.hpp>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

endpoint with_port(const endpoint& address, std::uint16_t port) {
  sockaddr_storage copy{};
  std::memcpy(&copy, address.address(), address.length());
  // The port is at the same place for both families.
  reinterpret_cast<sockaddr_in&>(copy).sin_port = htons(port);
  return endpoint(reinterpret_cast<const sockaddr*>(&copy), address.length());
}

bool is_not_of_this_machine(const std::error_code& error) {
  return error == std::errc::address_not_available ||
         error == std::errc::address_family_not_supported;
}

}  // namespace

std::vector<tcp_listener> tcp_listener::on_all_addresses(std::string_view host, std::uint16_t port,
                                                         listen_options options) {
  options.v6_only = true;  // else it would need the port of the IPv4 listener
  std::vector<tcp_listener> listeners;
  std::exception_ptr refusal;
  std::vector<endpoint> addresses;  // a name may have an address twice
  for (const endpoint& address : dns::resolve(host, port)) {
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) continue;
    addresses.push_back(address);
    try {
      listeners.push_back(tcp_listener(with_port(address, port), options));
    } catch (const std::system_error& error) {
      if (!is_not_of_this_machine(error.code())) throw;
      refusal = std::current_exception();
      continue;
    }
    port = listeners.front().local_endpoint().port();
  }
  if (listeners.empty()) std::rethrow_exception(refusal);
  return listeners;
}

}}}  // namespace motet::MOTET_ABI::net
