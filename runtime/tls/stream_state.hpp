// SPDX-License-Identifier: MIT
// What a TLS stream keeps: OpenSSL's connection, the stream below, and the bytes between the two.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/detail/io/any_stream.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/tls.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "io/stream_calls.hpp"
#include "tls/context.hpp"
#include "tls/failure.hpp"
#include "tls/memory_bio.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

struct ssl_free {
  void operator()(SSL* pointer) const noexcept { SSL_free(pointer); }
};

/// OpenSSL's calls never wait: when one needs bytes, the fiber fetches them and repeats the call.
/// Encrypted bytes are sent before the fiber waits for anything else, or encrypts more.
struct stream::state : detail::stream_turns<stream::state> {
  /// Throws: std::bad_alloc.
  state(detail::any_stream carrier, SSL_CTX* ssl_context);
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  /// The server must be `host`, and may offer `tls_context` sessions.
  /// Throws: std::invalid_argument.
  void be_client(std::shared_ptr<client_context::state> tls_context, std::string_view host);
  void be_server(std::shared_ptr<server_context::state> tls_context) noexcept;
  /// Throws: std::system_error; a pending interruption.
  void handshake();

  // The caller has the turn to read, or to write.
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept;
  std::size_t write(std::span<const std::byte> bytes, std::error_code& error) noexcept;
  void write_all(std::span<const std::byte> bytes, std::error_code& error) noexcept;
  /// Sends close_notify.
  void end_writing(std::error_code& error) noexcept;

  /// Called by close(), after the queues were closed.
  void send_close_notify() noexcept;

  SSL* get() const noexcept { return ssl_.get(); }
  int descriptor() const noexcept { return carrier_.native_handle(); }
  detail::any_stream& below() noexcept { return carrier_; }
  /// Throws: `error`, with what is known of it; a pending interruption.
  [[noreturn]] void throw_error(const std::error_code& error, const std::string& action) const;

 private:
  enum class outcome { done, wants_bytes, ended, failed };

  template <typename Call>
  outcome attempt(Call call) noexcept;
  bool must_not(std::error_code& error) const noexcept;
  void fetch(std::error_code& error) noexcept;
  void send(std::error_code& error) noexcept;
  void send_unasked() noexcept;

  detail::any_stream carrier_;
  memory_bio bio_;
  byte_queue in_flight_;  // encrypted bytes that the underlying stream is sending
  std::shared_ptr<client_context::state> client_;
  std::shared_ptr<server_context::state> server_;
  std::string host_;
  std::unique_ptr<SSL, ssl_free> ssl_;
  const std::uint32_t process_ = detail::this_process();
  failure failure_;               // the stream is unusable afterwards
  std::error_code cannot_write_;  // received data can still be read
  bool is_up_ = false;            // the handshake has been done
  bool writing_has_ended_ = false;
  bool last_was_full_ = false;  // the last fetch filled the buffer: more may have arrived
};

}}}  // namespace motet::MOTET_ABI::tls
