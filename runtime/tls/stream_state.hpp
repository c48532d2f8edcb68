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

#include "io/stream_turns.hpp"
#include "tls/context.hpp"
#include "tls/failure.hpp"
#include "tls/memory_bio.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

struct ssl_free {
  void operator()(SSL* one) const noexcept { SSL_free(one); }
};

/// A call of OpenSSL's never waits: when it wants bytes, the fiber fetches them and calls again.
/// What it has sealed is sent before the fiber waits for anything else, and before more is sealed.
struct stream::state : detail::stream_turns<stream::state> {
  /// Throws: std::bad_alloc.
  state(detail::any_stream below, SSL_CTX* by);
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  /// The server must be `host`, and may offer `by` sessions. Throws: std::invalid_argument.
  void be_client(std::shared_ptr<client_context::state> by, std::string_view host);
  void be_server(std::shared_ptr<server_context::state> by) noexcept;
  /// Throws: std::system_error; a pending interruption.
  void handshake();

  // The caller has the turn to read, or to write.
  std::size_t read(std::span<std::byte> room, std::error_code& error) noexcept;
  std::size_t write(std::span<const std::byte> bytes, std::error_code& error) noexcept;
  void write_all(std::span<const std::byte> bytes, std::error_code& error) noexcept;
  /// Says that no more will be written.
  void end_writing(std::error_code& error) noexcept;

  /// As close() has it, on the way to its end: the queues are closed.
  void send_close_notify() noexcept;

  SSL* get() const noexcept { return ssl_.get(); }
  detail::any_stream& below() noexcept { return below_; }
  /// Throws: `error`, with what is known of it; a pending interruption.
  [[noreturn]] void throw_error(const std::error_code& error, const std::string& what) const;

 private:
  enum class outcome { done, wants_bytes, ended, failed };

  template <typename Call>
  outcome attempt(Call call) noexcept;
  bool must_not(std::error_code& error) const noexcept;
  void fetch(std::error_code& error) noexcept;
  void send(std::error_code& error) noexcept;
  void send_unasked() noexcept;

  detail::any_stream below_;
  memory_bio bio_;
  byte_queue in_flight_;  // sealed, and where it stays until the stream below has taken it
  std::shared_ptr<client_context::state> client_;
  std::shared_ptr<server_context::state> server_;
  std::string host_;
  std::unique_ptr<SSL, ssl_free> ssl_;
  const std::uint32_t process_ = detail::this_process();
  failure failure_;               // nothing can be read or written from then on
  std::error_code cannot_write_;  // but what has come can be read
  bool is_up_ = false;            // the handshake has been done
  bool writing_has_ended_ = false;
  bool last_was_full_ = false;  // what was fetched last: more may have come
};

}}}  // namespace motet::MOTET_ABI::tls
