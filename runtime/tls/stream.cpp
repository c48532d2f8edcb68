// SPDX-License-Identifier: MIT
// The streams of motet/tls.hpp: turns to read and to write, round what tls/stream_state.hpp does.
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cerrno>
#include <motet/tls.hpp>

#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "tls/stream_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

namespace {

struct bio_free {
  void operator()(BIO* pointer) const noexcept { BIO_free(pointer); }
};

struct certificate_free {
  void operator()(X509* pointer) const noexcept { X509_free(pointer); }
};

std::string_view text_of(const char* text) noexcept {
  return text == nullptr ? std::string_view() : text;
}

}  // namespace

template <bool Writes>
struct stream::moving {
  static detail::stream_queue& turn(state& connection) noexcept {
    return Writes ? connection.write_queue : connection.read_queue;
  }

  /// Waits for the turn. Returns: 0, -ECANCELED or -EBADF.
  /// Throws: std::logic_error if a fiber of another thread uses the stream, in whichever direction:
  ///         OpenSSL's connection is one for both.
  static std::int32_t begin(state* connection) {
    if (connection == nullptr) return -EBADF;
    detail::stream_queue& other_turn = Writes ? connection->read_queue : connection->write_queue;
    if (other_turn.taken_elsewhere()) connection->check_threads();
    return net::take_turn(turn(*connection), Writes ? "turn to write on fd" : "turn to read on fd",
                          connection->below().native_handle());
  }

  /// Calls `call(error)` in the turn.
  template <typename Call>
  static std::size_t quietly(state* connection, std::error_code& error, Call call) noexcept {
    detail::quietly(error, [&] { return begin(connection); });
    if (error) return 0;
    const std::size_t count = call(error);
    turn(*connection).pass();
    return count;
  }

  /// Throws: the error of `call`, with what is known of it.
  template <typename Call>
  static std::size_t throwing(state* connection, const char* action, Call call) {
    detail::here().deliver();
    detail::check_result(begin(connection), action, -1);
    std::error_code error;
    const std::size_t count = call(error);
    turn(*connection).pass();
    if (error) connection->throw_error(error, action);
    return count;
  }

  static void* take(void* object, std::error_code& error) noexcept {
    state* connection = static_cast<stream*>(object)->state_.get();
    detail::quietly(error, [&] { return begin(connection); });
    if (!error) turn(*connection).keep();
    return connection;
  }
  static void pass(void* object) noexcept {
    auto* connection = static_cast<state*>(object);
    state::pass(connection, turn(*connection));
  }
  static std::size_t move(void* object, std::span<std::byte> bytes,
                          std::error_code& error) noexcept {
    auto& connection = *static_cast<state*>(object);
    return Writes ? connection.write(bytes, error) : connection.read(bytes, error);
  }
  /// What the kernel moves, it does not seal.
  static int descriptor(void*) noexcept { return -1; }

  static constexpr detail::direction_calls calls{take, pass, move, descriptor};
};

stream::stream() noexcept = default;
stream::stream(stream&&) noexcept = default;
stream::stream(detail::owned<state> connection) noexcept : state_(std::move(connection)) {}

stream& stream::operator=(stream&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

stream::~stream() {
  close();
}

stream stream::connect_over(detail::any_stream carrier, const client_context& tls_context,
                            std::string_view host) {
  detail::owned<state> connection(new state(std::move(carrier), tls_context.state_->get()));
  connection->be_client(tls_context.state_, host);
  connection->handshake();
  return stream(std::move(connection));
}

stream stream::accept_over(detail::any_stream carrier, const server_context& tls_context) {
  detail::owned<state> connection(new state(std::move(carrier), tls_context.state_->get()));
  connection->be_server(tls_context.state_);
  connection->handshake();
  return stream(std::move(connection));
}

std::size_t stream::read(std::span<std::byte> buffer) {
  state* connection = state_.get();
  return moving<false>::throwing(connection, "TLS read", [&](std::error_code& error) {
    return connection->read(buffer, error);
  });
}

std::size_t stream::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  state* connection = state_.get();
  return moving<false>::quietly(connection, error, [&](std::error_code& inner_error) {
    return connection->read(buffer, inner_error);
  });
}

std::size_t stream::write(std::span<const std::byte> buffer) {
  state* connection = state_.get();
  return moving<true>::throwing(connection, "TLS write", [&](std::error_code& error) {
    return connection->write(buffer, error);
  });
}

std::size_t stream::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  state* connection = state_.get();
  return moving<true>::quietly(connection, error, [&](std::error_code& inner_error) {
    return connection->write(buffer, inner_error);
  });
}

void stream::write_all(std::span<const std::byte> buffer) {
  state* connection = state_.get();
  moving<true>::throwing(connection, "TLS write_all", [&](std::error_code& error) {
    connection->write_all(buffer, error);
    return 0;
  });
}

void stream::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}

void stream::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  state* connection = state_.get();
  moving<true>::quietly(connection, error, [&](std::error_code& inner_error) {
    connection->write_all(buffer, inner_error);
    return 0;
  });
}

void stream::shutdown(int direction) {
  state* connection = state_.get();
  if (direction != SHUT_RD) {
    moving<true>::throwing(connection, "TLS shutdown", [&](std::error_code& error) {
      connection->end_writing(error);
      return 0;
    });
  }
  if (direction != SHUT_WR && state_ != nullptr) state_->below().shutdown(direction);
}

void stream::close() {
  if (state_ == nullptr) return;
  state_->check_threads();
  detail::owned<state> old_state = std::move(state_);
  old_state->end_queues();
  old_state->send_close_notify();
  old_state->below().close();
  state::let_go(std::move(old_state));
}

std::string_view stream::protocol() const noexcept {
  if (state_ == nullptr) return {};
  const unsigned char* name = nullptr;
  unsigned int length = 0;
  SSL_get0_alpn_selected(state_->get(), &name, &length);
  return {reinterpret_cast<const char*>(name), length};
}

std::string_view stream::version() const noexcept {
  return state_ == nullptr ? std::string_view() : SSL_get_version(state_->get());
}

std::string_view stream::server_name() const noexcept {
  if (state_ == nullptr) return {};
  return text_of(SSL_get_servername(state_->get(), TLSEXT_NAMETYPE_host_name));
}

bool stream::resumed() const noexcept {
  return state_ != nullptr && SSL_session_reused(state_->get()) == 1;
}

std::string stream::peer_certificate() const {
  if (state_ == nullptr) return {};
  const std::unique_ptr<X509, certificate_free> peer_certificate(
      SSL_get1_peer_certificate(state_->get()));
  if (peer_certificate == nullptr) return {};
  const std::unique_ptr<BIO, bio_free> text(BIO_new(BIO_s_mem()));
  if (text == nullptr || PEM_write_bio_X509(text.get(), peer_certificate.get()) != 1) {
    ERR_clear_error();
    throw std::bad_alloc();
  }
  char* begin = nullptr;
  const long size = BIO_get_mem_data(text.get(), &begin);
  return {begin, static_cast<std::size_t>(size)};
}

int stream::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->below().native_handle();
}

detail::stream_direction stream::input_direction() noexcept {
  return {this, &moving<false>::calls};
}

detail::stream_direction stream::output_direction() noexcept {
  return {this, &moving<true>::calls};
}

}}}  // namespace motet::MOTET_ABI::tls
