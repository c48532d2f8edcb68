// SPDX-License-Identifier: MIT
// TLS 1.2 and 1.3 over any stream, by OpenSSL 3. A program that includes this links with motet-tls.
#pragma once

#include <cstddef>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/owned.hpp>
#include <motet/detail/io/any_stream.hpp>
#include <motet/io/stream.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace tls {

/// Why a connection has failed, as the code of a std::system_error; the text of the exception has
/// details.
enum class errc {
  bad_certificate = 1,  // the peer's has expired, is for another name, or is not trusted
  refused,              // the peer has refused the connection, with an alert
  protocol_error,       // the peer violates the protocol, or no version or cipher is shared
  truncated,            // the connection ended without close_notify: data may be missing
};

/// Not a switchpoint.
const std::error_category& category() noexcept;
/// Not a switchpoint.
std::error_code make_error_code(errc code) noexcept;

/// PEM files with a certificate chain, the owner's certificate first, and its key.
struct certificate {
  std::string chain_file;
  std::string key_file;
};

struct client_options {
  /// A file with the trusted certificates, in PEM; if empty, the system's.
  std::string trusted_file = {};
  /// The client's own, for servers that ask for it.
  certificate own = {};
  /// ALPN protocols in order of preference, for example "http/1.1" (RFC 7301).
  std::vector<std::string> protocols = {};
  /// False: any peer is accepted as the server.
  bool verify = true;
};

struct server_options {
  /// At least one. A client is shown the first one for the name that it requests, else the first.
  std::vector<certificate> certificates;
  /// If set, clients must present a certificate signed by one of these authorities. If empty, they
  /// need none.
  std::string client_trusted_file = {};
  /// ALPN protocols in order of preference. A client that offers only others is refused; a client
  /// that does not use ALPN is accepted.
  std::vector<std::string> protocols = {};
};

/// What all connections of a client have in common. It keeps the sessions that servers offer for
/// resumption, so use one for many connections. Copies share one context. Any thread.
class client_context {
 public:
  /// Reads files, and blocks the thread meanwhile.
  /// Not a switchpoint.
  /// Throws: std::system_error that names a file; std::invalid_argument for a protocol that is
  ///         empty or longer than 255 bytes.
  explicit client_context(const client_options& options = {});

 private:
  friend class stream;
  class state;
  std::shared_ptr<state> state_;
};

/// The configuration shared by all connections of a server. Copies share one context. To change the
/// certificates create another one: existing connections keep theirs. Any thread.
class server_context {
 public:
  /// As client_context(); also throws std::invalid_argument if there is no certificate.
  /// Not a switchpoint.
  explicit server_context(const server_options& options);

 private:
  friend class stream;
  class state;
  std::shared_ptr<state> state_;
};

/// An encrypted and authenticated stream. Move-only. One fiber may read while another writes;
/// several that read, or that write, take turns in the order in which they called, and write_all()
/// keeps its turn until all is written. It is used on one thread at a time.
///
/// An interruption leaves it usable, except in connect() and accept(). After an error with a code
/// of errc, the stream is unusable, and every call fails with the same error.
class stream {
 public:
  /// Performs the handshake with the server at the other end of `transport`, and verifies that it
  /// is `host`, a name or an IP address. Sends the name to the server (SNI).
  /// Switchpoint.
  /// Throws: std::system_error with a code of errc, or of `transport`; std::invalid_argument for an
  ///         invalid `host`; a pending interruption. `transport` is closed then.
  /// Source: RFC 8446, RFC 6125, RFC 6066.
  template <motet::stream S>
    requires(!std::is_reference_v<S>)
  static stream connect(S&& transport, const client_context& context, std::string_view host) {
    return connect_over(detail::any_stream(std::forward<S>(transport)), context, host);
  }
  /// Performs the handshake with a client at the other end of `transport`.
  /// Switchpoint.
  /// Throws: as connect().
  template <motet::stream S>
    requires(!std::is_reference_v<S>)
  static stream accept(S&& transport, const server_context& context) {
    return accept_over(detail::any_stream(std::forward<S>(transport)), context);
  }

  /// A stream without a connection; every call fails with bad_file_descriptor.
  /// Not a switchpoint.
  stream() noexcept;
  stream(stream&&) noexcept;
  stream& operator=(stream&&) noexcept;
  /// As close(). Ends the process if a fiber of another thread is reading or writing.
  /// Switchpoint; nothing interrupts it.
  ~stream();

  /// Reads at most `buffer.size()` bytes.
  /// Returns: bytes read, in [0, buffer.size()]; 0 after the peer's close_notify.
  /// Switchpoint.
  /// Throws: std::system_error, with errc::truncated if the connection ended without close_notify;
  ///         a pending interruption, and then nothing was read; std::logic_error if another
  ///         thread's fiber is reading or writing.
  std::size_t read(std::span<std::byte> buffer);
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept;

  /// Writes at most `buffer.size()` bytes, perhaps fewer.
  /// Returns: the number of bytes encrypted. If the call is interrupted after it has encrypted
  ///          some, it returns, and the next write first sends those not yet sent.
  /// Switchpoint.
  /// Throws: as read().
  std::size_t write(std::span<const std::byte> buffer);
  std::size_t write(std::span<const std::byte> buffer, std::error_code& error) noexcept;

  /// Writes all of `buffer`.
  /// Switchpoint.
  /// Throws: as read(); part of `buffer` may have been written then.
  void write_all(std::span<const std::byte> buffer);
  void write_all(std::string_view text);
  void write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept;

  /// With SHUT_WR, sends close_notify after all written data; the peer's data can still be read.
  /// SHUT_RD and SHUT_RDWR also shut down the underlying stream.
  /// Switchpoint.
  /// Throws: as write().
  void shutdown(int direction);

  /// Ends every read and write with bad_file_descriptor, sends close_notify for at most 100 ms, and
  /// closes the underlying stream. A stalled peer does not receive it, and sees a truncation: where
  /// that matters, first call shutdown(SHUT_WR) under a time limit of your own.
  /// Switchpoint; nothing interrupts it.
  /// Throws: std::logic_error if a fiber of another thread is reading or writing.
  void close();

  /// Returns: the protocol that both speak; empty if none was agreed on. Lives as long as the
  ///          connection.
  /// Not a switchpoint.
  std::string_view protocol() const noexcept;
  /// Returns: "TLSv1.3" or "TLSv1.2"; empty if there is no connection.
  /// Not a switchpoint.
  std::string_view version() const noexcept;
  /// Returns: the server name that the client requested (SNI); empty if it requested none. Lives as
  ///          long as the connection.
  /// Not a switchpoint.
  std::string_view server_name() const noexcept;
  /// Returns: whether the handshake was short because it resumed an earlier connection's session.
  /// Not a switchpoint.
  bool resumed() const noexcept;
  /// Returns: the peer's certificate in PEM; empty if it has shown none.
  /// Not a switchpoint.
  /// Throws: std::bad_alloc.
  std::string peer_certificate() const;

  /// Returns: the descriptor of the underlying stream, which still owns it; -1 if it has none.
  /// Not a switchpoint.
  int native_handle() const noexcept;

  /// For reader, writer and copy().
  /// Not a switchpoint.
  detail::stream_direction input_direction() noexcept;
  detail::stream_direction output_direction() noexcept;

 private:
  struct state;
  template <bool Writes>
  struct half;

  explicit stream(detail::owned<state> data) noexcept;
  static stream connect_over(detail::any_stream transport, const client_context& context,
                             std::string_view host);
  static stream accept_over(detail::any_stream transport, const server_context& context);

  detail::owned<state> state_;
};

}}}  // namespace motet::MOTET_ABI::tls

template <>
struct std::is_error_code_enum<motet::tls::errc> : std::true_type {};
