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
  void operator()(BIO* one) const noexcept { BIO_free(one); }
};

struct certificate_free {
  void operator()(X509* one) const noexcept { X509_free(one); }
};

std::string_view text_of(const char* text) noexcept {
  return text == nullptr ? std::string_view() : text;
}

}  // namespace

template <bool Writes>
struct stream::moving {
  static detail::stream_queue& turn(state& used) noexcept {
    return Writes ? used.writing : used.reading;
  }

  /// Waits for the turn. Returns: 0, -ECANCELED or -EBADF.
  /// Throws: std::logic_error if a fiber of another thread uses the stream, in whichever direction:
  ///         OpenSSL's connection is one for both.
  static std::int32_t begin(state* used) {
    if (used == nullptr) return -EBADF;
    detail::stream_queue& other = Writes ? used->reading : used->writing;
    if (other.taken_elsewhere()) used->check_threads();
    return net::take_turn(turn(*used), Writes ? "turn to write on fd" : "turn to read on fd",
                          used->below().native_handle());
  }

  /// Calls `call(error)` in the turn.
  template <typename Call>
  static std::size_t quietly(state* used, std::error_code& error, Call call) noexcept {
    detail::quietly(error, [&] { return begin(used); });
    if (error) return 0;
    const std::size_t moved = call(error);
    turn(*used).pass();
    return moved;
  }

  /// Throws: the error of `call`, with what is known of it.
  template <typename Call>
  static std::size_t throwing(state* used, const char* what, Call call) {
    detail::here().deliver();
    detail::check_result(begin(used), what, -1);
    std::error_code error;
    const std::size_t moved = call(error);
    turn(*used).pass();
    if (error) used->throw_error(error, what);
    return moved;
  }

  static void* take(void* one, std::error_code& error) noexcept {
    state* used = static_cast<stream*>(one)->state_.get();
    detail::quietly(error, [&] { return begin(used); });
    if (!error) turn(*used).keep();
    return used;
  }
  static void pass(void* held) noexcept {
    auto* used = static_cast<state*>(held);
    state::pass(used, turn(*used));
  }
  static std::size_t move(void* held, std::span<std::byte> bytes, std::error_code& error) noexcept {
    auto& used = *static_cast<state*>(held);
    return Writes ? used.write(bytes, error) : used.read(bytes, error);
  }
  /// What the kernel moves, it does not seal.
  static int descriptor(void*) noexcept { return -1; }

  static constexpr detail::direction_calls calls{take, pass, move, descriptor};
};

stream::stream() noexcept = default;
stream::stream(stream&&) noexcept = default;
stream::stream(detail::owned<state> connected) noexcept : state_(std::move(connected)) {}

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

stream stream::connect_over(detail::any_stream under, const client_context& by,
                            std::string_view host) {
  detail::owned<state> made(new state(std::move(under), by.state_->get()));
  made->be_client(by.state_, host);
  made->handshake();
  return stream(std::move(made));
}

stream stream::accept_over(detail::any_stream under, const server_context& by) {
  detail::owned<state> made(new state(std::move(under), by.state_->get()));
  made->be_server(by.state_);
  made->handshake();
  return stream(std::move(made));
}

std::size_t stream::read(std::span<std::byte> buffer) {
  state* used = state_.get();
  return moving<false>::throwing(used, "TLS read",
                                 [&](std::error_code& error) { return used->read(buffer, error); });
}

std::size_t stream::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  state* used = state_.get();
  return moving<false>::quietly(used, error,
                                [&](std::error_code& told) { return used->read(buffer, told); });
}

std::size_t stream::write(std::span<const std::byte> buffer) {
  state* used = state_.get();
  return moving<true>::throwing(used, "TLS write",
                                [&](std::error_code& error) { return used->write(buffer, error); });
}

std::size_t stream::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  state* used = state_.get();
  return moving<true>::quietly(used, error,
                               [&](std::error_code& told) { return used->write(buffer, told); });
}

void stream::write_all(std::span<const std::byte> buffer) {
  state* used = state_.get();
  moving<true>::throwing(used, "TLS write_all", [&](std::error_code& error) {
    used->write_all(buffer, error);
    return 0;
  });
}

void stream::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}

void stream::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  state* used = state_.get();
  moving<true>::quietly(used, error, [&](std::error_code& told) {
    used->write_all(buffer, told);
    return 0;
  });
}

void stream::shutdown(int how) {
  state* used = state_.get();
  if (how != SHUT_RD) {
    moving<true>::throwing(used, "TLS shutdown", [&](std::error_code& error) {
      used->end_writing(error);
      return 0;
    });
  }
  if (how != SHUT_WR && state_ != nullptr) state_->below().shutdown(how);
}

void stream::close() {
  if (state_ == nullptr) return;
  state_->check_threads();
  detail::owned<state> closed = std::move(state_);
  closed->end_queues();
  closed->send_close_notify();
  closed->below().close();
  state::let_go(std::move(closed));
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
  const std::unique_ptr<X509, certificate_free> shown(SSL_get1_peer_certificate(state_->get()));
  if (shown == nullptr) return {};
  const std::unique_ptr<BIO, bio_free> text(BIO_new(BIO_s_mem()));
  if (text == nullptr || PEM_write_bio_X509(text.get(), shown.get()) != 1) {
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
