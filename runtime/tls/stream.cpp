// SPDX-License-Identifier: MIT
// The streams of motet/tls.hpp: turns to read and to write, round what tls/stream_state.hpp does.
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cerrno>
#include <motet/tls.hpp>

#include "io/stream_calls.hpp"
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

/// Errors of OpenSSL and of the stream below are no errno values: they are in `error_`, and a call
/// with one returns -EIO.
template <bool Writes>
struct stream::half : detail::stream_half<half<Writes>, state, Writes> {
  using detail::stream_half<half, state, Writes>::stream_half;
  static half of(void* object) noexcept { return half(static_cast<stream*>(object)->state_.get()); }
  /// What the kernel moves, it does not seal.
  int kernel_descriptor() const noexcept { return -1; }

  /// Also throws std::logic_error if a fiber of another thread uses the other direction: OpenSSL's
  /// connection is one for both.
  std::int32_t acquire() {
    if (this->state()->queue(!Writes).held_elsewhere()) this->state()->check_threads();
    return detail::stream_half<half, state, Writes>::acquire();
  }

  std::int32_t move(std::span<const std::byte> bytes) {
    if (Writes) return result(this->state()->write(bytes, error_));
    const std::span<std::byte> buffer(const_cast<std::byte*>(bytes.data()), bytes.size());
    return result(this->state()->read(buffer, error_));
  }
  std::int32_t write_all(std::span<const std::byte> buffer) {
    return this->in_turn([&] {
      this->state()->write_all(buffer, error_);
      return result(0);
    });
  }
  std::int32_t end_writing() {
    return this->in_turn([&] {
      this->state()->end_writing(error_);
      return result(0);
    });
  }

  std::size_t check(std::int32_t result, const char* call, int) const {
    if (result >= 0) return static_cast<std::size_t>(result);
    const std::string action = std::string("TLS ") + call;
    if (error_) this->state()->throw_error(error_, action);
    return detail::check_result(result, action.c_str(), -1);
  }
  void refine(std::error_code& error) const noexcept {
    if (error_) error = error_;
  }

 private:
  /// OpenSSL moves at most a few records at a time, so a count fits.
  std::int32_t result(std::size_t count) const noexcept {
    return error_ ? -EIO : static_cast<std::int32_t>(count);
  }

  std::error_code error_;
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
  return detail::stream_read(half<false>(state_.get()), buffer);
}
std::size_t stream::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return detail::stream_read(half<false>(state_.get()), buffer, error);
}

std::size_t stream::write(std::span<const std::byte> buffer) {
  return detail::stream_write(half<true>(state_.get()), buffer);
}
std::size_t stream::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::stream_write(half<true>(state_.get()), buffer, error);
}

void stream::write_all(std::span<const std::byte> buffer) {
  detail::stream_write_all(half<true>(state_.get()), buffer);
}
void stream::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}
void stream::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  detail::stream_write_all(half<true>(state_.get()), buffer, error);
}

void stream::shutdown(int direction) {
  if (direction != SHUT_RD) {
    detail::call_throwing(half<true>(state_.get()), "shutdown",
                          [](half<true>& output) { return output.end_writing(); });
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
  state::destroy_when_unused(std::move(old_state));
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
  return {this, &detail::direction_of<half<false>>::calls};
}

detail::stream_direction stream::output_direction() noexcept {
  return {this, &detail::direction_of<half<true>>::calls};
}

}}}  // namespace motet::MOTET_ABI::tls
