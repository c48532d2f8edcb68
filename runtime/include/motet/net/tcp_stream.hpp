// SPDX-License-Identifier: MIT
// A TCP connection.
#pragma once

#include <cstdint>
#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/socket_stream.hpp>
#include <string_view>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Owns a connection. Move-only. One fiber may read while another writes. Several fibers that read,
/// or that write, take turns in the order in which they called, and write_all() keeps its turn
/// until all is written.
class tcp_stream : public detail::socket_stream {
 public:
  /// Connects to `peer`; TCP_NODELAY is set.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption.
  static tcp_stream connect(const endpoint& peer);
  static tcp_stream connect(const endpoint& peer, std::error_code& error) noexcept;
  /// Looks up `host` as dns::resolve() does, and connects to the first of its addresses that
  /// answers. IPv6 and IPv4 take turns; the next address is tried when one has failed, or has not
  /// answered for 250 ms. A time limit around the call covers the look-up and all attempts.
  /// Switchpoint.
  /// Throws: as dns::resolve(); std::system_error with the error of the address that failed last.
  /// Source: RFC 8305.
  static tcp_stream connect(std::string_view host, std::uint16_t port);

  /// A stream without a connection; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  tcp_stream() noexcept = default;
  /// Takes over a connected socket and sets TCP_NODELAY where it can.
  /// Not a switchpoint.
  explicit tcp_stream(fd socket);
  tcp_stream(tcp_stream&&) noexcept = default;
  tcp_stream& operator=(tcp_stream&&) noexcept = default;
  /// As close(). Ends the process if a fiber of another thread is reading or writing.
  /// Switchpoint; nothing interrupts it.
  ~tcp_stream() = default;

  /// Not a switchpoint.
  /// Throws: std::system_error.
  endpoint local_endpoint() const;
  endpoint peer_endpoint() const;
  void set_no_delay(bool enable);
};

}}}  // namespace motet::MOTET_ABI::net
