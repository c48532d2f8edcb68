// SPDX-License-Identifier: MIT
// WebSockets: messages in both directions on a connection that began as HTTP. Source: RFC 6455.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/base/clock.hpp>
#include <motet/http/fields.hpp>
#include <motet/http/request.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct websocket_message {
  std::string data;
  bool is_text = true;  // UTF-8, which has been checked
};

/// The close code and reason that a peer has sent.
/// Source: RFC 6455, 7.4.
struct websocket_end {
  std::uint16_t code = 1005;  // 1000: normal closure; 1001: going away; 1005: no code was sent
  std::string reason;
};

struct websocket_options {
  /// The maximum size of a received message, in bytes.
  std::size_t message = std::size_t{16} * 1024 * 1024;
  /// While read() waits, a peer that has been silent for this long is sent a ping. If it stays
  /// silent for as long again, the connection counts as lost.
  clock::duration idle = std::chrono::seconds(30);
  /// How long the peer may go without accepting data that is sent to it.
  clock::duration stall = std::chrono::seconds(30);
  /// How long a client may take to connect, including the handshakes.
  clock::duration connect = std::chrono::seconds(10);
  /// How long close() waits for the peer's answer.
  clock::duration farewell = std::chrono::seconds(1);
  /// Subprotocols. A client offers all of them; a server chooses the first of these that the client
  /// offers, or none.
  std::vector<std::string> protocols = {};
  /// What a client's request has besides the usual headers.
  fields headers = {};
  /// For wss: as client_options::trusted_file.
  std::string trusted_file = {};
};

/// A WebSocket. Move-only. One fiber at a time reads, others wait for their turn; any number write
/// whole messages; all on one thread. Pings are answered while a fiber reads. After an interrupted
/// read(), the next one continues with the same message. An interrupted write() has sent nothing,
/// or closes the WebSocket if it has sent a part.
class websocket {
 public:
  /// Turns a server's connection into a WebSocket, which must not outlive the handler. When the
  /// handler returns, the connection is closed. A browser sends the cookies of its user with every
  /// request, from whichever page: a server that trusts cookies must look at `Origin` first.
  /// Switchpoint.
  /// Throws: status_error for a request that does not ask for a WebSocket; std::logic_error if the
  ///         answer has begun; std::system_error; a pending interruption.
  static websocket accept(request& message, response& answer,
                          const websocket_options& options = {});
  /// Connects to a ws or wss address.
  /// Switchpoint.
  /// Throws: std::invalid_argument for an invalid address; bad_reply if the server declines;
  ///         std::system_error; timed_out; tls::errc; std::logic_error for wss without motet-tls;
  ///         a pending interruption.
  static websocket connect(std::string_view address, const websocket_options& options = {});

  websocket(websocket&&) noexcept;
  websocket& operator=(websocket&&) noexcept;
  /// Closes the connection; without close() the peer takes it for lost.
  /// Switchpoint for a client with wss; nothing interrupts it.
  ~websocket();

  /// Returns: the next message; std::nullopt when the peer has closed the WebSocket.
  /// Switchpoint.
  /// Throws: std::system_error: connection_reset if the connection ends without a close frame, or
  ///         Boost.Beast's error for a protocol violation, which is also reported to the peer;
  ///         timed_out for an unresponsive peer; broken_pipe if the WebSocket is closed; a pending
  ///         interruption.
  std::optional<websocket_message> read();

  /// Sends a text, which must be UTF-8.
  /// Switchpoint.
  /// Throws: std::system_error, broken_pipe if the WebSocket has ended; timed_out if the peer takes
  ///         nothing; a pending interruption.
  void write(std::string_view text);
  /// Sends a binary message.
  /// Switchpoint.
  /// Throws: as above.
  void write(std::span<const std::byte> bytes);

  /// Sends a close frame, and waits for the peer's, for at most websocket_options::farewell.
  /// Messages that arrive meanwhile are dropped. If another fiber reads, this waits for its
  /// turn, so it is best called by the fiber that reads.
  /// No effect if the WebSocket is closed.
  /// Switchpoint.
  /// Throws: std::invalid_argument for a reason of more than 123 bytes, or a code that must
  ///         not be sent; a pending interruption.
  void close(std::uint16_t code = 1000, std::string_view reason = {});

  /// Returns: how the peer has closed it. Until read() has returned std::nullopt, or close() has
  ///          been answered, the code is 1005.
  /// Not a switchpoint.
  const websocket_end& ended() const noexcept;
  /// Returns: the negotiated subprotocol, one of websocket_options::protocols; empty if there is
  ///          none. Not a switchpoint.
  const std::string& protocol() const noexcept;

 private:
  class state;
  explicit websocket(std::unique_ptr<state> data) noexcept;

  std::unique_ptr<state> state_;
};

}}}  // namespace motet::MOTET_ABI::http
