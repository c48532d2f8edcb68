// SPDX-License-Identifier: MIT
// What a WebSocket keeps: Boost.Beast's, which knows frames, and what is above them.
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cstddef>
#include <cstdint>
#include <motet/detail/io/any_stream.hpp>
#include <motet/detail/io/read_buffer.hpp>
#include <motet/http/websocket.hpp>
#include <motet/sync/mutex.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "http/client/secure.hpp"
#include "http/client/url.hpp"
#include "http/server/server_connection.hpp"
#include "http/websocket/beast_stream.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

/// A request for a WebSocket, as Boost.Beast takes it.
using upgrade = boost::beast::http::request<boost::beast::http::empty_body>;

inline boost::beast::string_view text_for_beast(std::string_view text) noexcept {
  return {text.data(), text.size()};
}

class websocket::state {
 public:
  /// Of a server.
  state(server_connection& connection, const websocket_options& options);
  /// Of a client.
  state(detail::any_stream stream, const secure_client& secure, const websocket_options& options);

  /// Accepts a request that is known to ask for a WebSocket; `headers`: additional headers.
  void accept(const upgrade& request, const fields& headers);
  /// Throws: bad_reply if the server declines.
  void ask(const url& address);
  // The same as in websocket.
  std::optional<websocket_message> read();
  void write(std::span<const std::byte> bytes, bool is_text);
  void close(std::uint16_t code, std::string_view reason);

  websocket_end end;
  std::string protocol;

 private:
  using error_code = boost::system::error_code;

  void set_up();
  std::string receive_answer();
  void check_open() const;
  bool read_piece(error_code& error);
  void read_message(error_code& error);
  void refuse(boost::beast::websocket::close_code code, error_code error);
  std::optional<websocket_message> tell(const error_code& error);
  void ping();
  void note_end();

  std::optional<secure_client> secure_;
  const websocket_options options_;
  detail::any_stream stream_;
  std::optional<detail::read_buffer> input_;
  boost::beast::websocket::stream<beast_stream, false> socket_;
  local::mutex read_mutex_;
  std::string message_;   // with spare capacity
  std::size_t size_ = 0;  // bytes of it received so far
  error_code refusal_;    // why the peer was refused for what Boost.Beast lets pass
  bool is_over_ = false;
  bool peer_closed_ = false;  // by a close frame
};

}}}  // namespace motet::MOTET_ABI::http
