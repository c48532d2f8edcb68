// SPDX-License-Identifier: MIT
// See tls/stream_state.hpp. Source: SSL_read_ex(3), SSL_shutdown(3).
#include "tls/stream_state.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

namespace {

constexpr std::chrono::milliseconds last_moment(100);

/// What is asked of the stream below at a time: little of one that says little.
constexpr std::size_t least_capacity = std::size_t{4} * 1024;
constexpr std::size_t most_capacity = std::size_t{64} * 1024;

/// What is sealed at a time: four records of the largest size. Source: RFC 8446, 5.1.
constexpr std::size_t most_sealed = std::size_t{4} * 16 * 1024;

std::error_code code_of(std::errc code) noexcept {
  return std::make_error_code(code);
}

bool is_address(const std::string& host) noexcept {
  in6_addr address;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

/// The peer must prove to be `host`. Returns: false if that is no name.
bool expect(SSL* connection, const std::string& host) noexcept {
  if (is_address(host)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), host.c_str()) == 1;
  }
  SSL_set_hostflags(connection,
                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return SSL_set1_host(connection, host.c_str()) == 1;
}

/// Returns: false if that is no name.
bool tell_name(SSL* connection, const std::string& host) noexcept {
  return SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(host.c_str())) == 1;
}

void refuse_if_pending(std::error_code& error) noexcept {
  detail::quietly(error, [] { return detail::refused_by_pending() ? -ECANCELED : 0; });
}

}  // namespace

stream::state::state(detail::any_stream carrier, SSL_CTX* ssl_context)
    : carrier_(std::move(carrier)), ssl_(SSL_new(ssl_context)) {
  if (ssl_ == nullptr || !bio_.connect_to(get())) {
    ERR_clear_error();
    throw std::bad_alloc();
  }
}

void stream::state::be_client(std::shared_ptr<client_context::state> tls_context,
                              std::string_view host) {
  client_ = std::move(tls_context);
  host_ = host;
  if (host_.ends_with('.')) host_.pop_back();
  // A dot in front would stand for whatever is below.
  const bool named =
      !host_.empty() && host_.front() != '.' && host_.find('\0') == std::string::npos;
  const bool told = !named || is_address(host_) || tell_name(get(), host_);
  if (!told || (client_->verifies() && !(named && expect(get(), host_)))) {
    ERR_clear_error();
    throw std::invalid_argument("tls::stream::connect(): not a valid host name: '" + host_ + "'");
  }
  client_context::state::store_sessions_as(get(), host_);
  const session old_session = client_->session_cache.take(host_);
  if (old_session != nullptr) SSL_set_session(get(), old_session.get());
  SSL_set_connect_state(get());
}

void stream::state::be_server(std::shared_ptr<server_context::state> tls_context) noexcept {
  server_ = std::move(tls_context);
  SSL_set_accept_state(get());
}

/// Calls OpenSSL, and leaves no error behind for other users of the thread's queue.
template <typename Call>
stream::state::outcome stream::state::attempt(Call call) noexcept {
  ERR_clear_error();
  const int result = call();
  if (result > 0) {
    ERR_clear_error();
    return outcome::done;
  }
  switch (SSL_get_error(get(), result)) {
    case SSL_ERROR_WANT_READ:
      return outcome::wants_bytes;
    case SSL_ERROR_ZERO_RETURN:
      return outcome::ended;
    case SSL_ERROR_SYSCALL:  // the memory BIO has refused bytes: no memory, or too many wait
      failure_.code = code_of(std::errc::not_enough_memory);
      return outcome::failed;
    default:
      failure_ = failure_of(get());
      return outcome::failed;
  }
}

/// The client need not wait for what the server sends after the handshake: it may have sent all its
/// data and closed the connection.
void stream::state::handshake() {
  const std::string action = host_.empty() ? "TLS handshake" : "TLS handshake with " + host_;
  for (;;) {
    const outcome result = attempt([&] { return SSL_do_handshake(get()); });
    std::error_code error;
    send(error);
    is_up_ = result == outcome::done;
    if (is_up_ && error != std::errc::operation_canceled) return;
    if (failure_ && error != std::errc::operation_canceled) throw_error(failure_.code, action);
    if (!error) fetch(error);
    if (error) throw_error(error, action);
    if (failure_) throw_error(failure_.code, action);
  }
}

/// Returns: whether there is a reason, in `error`, why nothing can be read or written.
bool stream::state::must_not(std::error_code& error) const noexcept {
  if (failure_) error = failure_.code;
  return static_cast<bool>(failure_);
}

std::size_t stream::state::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  for (refuse_if_pending(error); !error && !buffer.empty() && !must_not(error); fetch(error)) {
    std::size_t size = 0;
    const outcome result =
        attempt([&] { return SSL_read_ex(get(), buffer.data(), buffer.size(), &size); });
    if (!bio_.output.empty() || !in_flight_.empty()) send_unasked();
    if (result == outcome::done) return size;
    if (result == outcome::ended || must_not(error)) break;
  }
  return 0;
}

/// Bytes that are sealed count as written, whatever interrupts the call then.
std::size_t stream::state::write(std::span<const std::byte> bytes,
                                 std::error_code& error) noexcept {
  refuse_if_pending(error);
  if (error || must_not(error)) return 0;
  if (writing_has_ended_) error = code_of(std::errc::broken_pipe);
  if (!error) send(error);
  if (error || bytes.empty()) return 0;
  std::size_t size = 0;
  const std::size_t limit = std::min(bytes.size(), most_sealed);
  const outcome result = attempt([&] { return SSL_write_ex(get(), bytes.data(), limit, &size); });
  if (result != outcome::done && !must_not(error)) error = make_error_code(errc::protocol_error);
  if (error) return 0;
  send(error);
  if (error == std::errc::operation_canceled) error.clear();
  return error ? 0 : size;
}

void stream::state::write_all(std::span<const std::byte> bytes, std::error_code& error) noexcept {
  do {
    bytes = bytes.subspan(write(bytes, error));
  } while (!error && !bytes.empty());
  if (!error) send(error);
}

void stream::state::end_writing(std::error_code& error) noexcept {
  refuse_if_pending(error);
  if (error || must_not(error)) return;
  if (!std::exchange(writing_has_ended_, true)) {
    // 0, the peer has not sent close_notify yet, is not a failure.
    attempt([&] {
      const int result = SSL_shutdown(get());
      return result == 0 ? 1 : result;
    });
  }
  if (!must_not(error)) send(error);
}

/// Fetches bytes for OpenSSL, which has consumed all that had arrived.
void stream::state::fetch(std::error_code& error) noexcept {
  byte_queue& input = bio_.input;
  const std::size_t capacity = last_was_full_ ? input.capacity() * 2 : least_capacity;
  if (!input.reserve(std::min(capacity, most_capacity))) {
    error = code_of(std::errc::not_enough_memory);
    return;
  }
  detail::direction_lock source(carrier_.input(), error);
  if (error) return;
  const std::size_t size = source.read(input.space(), error);
  if (error) return;
  if (size == 0) failure_ = {make_error_code(errc::truncated), {}};
  input.added(size);
  last_was_full_ = input.space().empty();
}

/// Sends all that is sealed. An interruption leaves the rest for the next call.
void stream::state::send(std::error_code& error) noexcept {
  error = cannot_write_;
  if (error || (in_flight_.empty() && bio_.output.empty())) return;
  detail::direction_lock target(carrier_.output(), error);
  while (!error) {
    if (in_flight_.empty()) in_flight_.swap(bio_.output);
    if (in_flight_.empty()) return;
    in_flight_.consume(target.write(in_flight_.held(), error));
  }
  if (error != std::errc::operation_canceled) cannot_write_ = error;
}

/// Sends what a fiber that reads has to answer, as an alert, and what an interrupted write has
/// left. A fiber that writes sends it as well.
void stream::state::send_unasked() noexcept {
  detail::stream_queue& output = queue(true);
  if (output.in_call() || output.held_across_calls()) return;
  std::error_code error;
  detail::quietly(error, [&] {
    return net::acquire_turn(output, "turn to write on fd", carrier_.native_handle());
  });
  if (error) return;
  send(error);
  output.release();
}

/// A forked child has a copy of the connection, which goes on in its parent.
void stream::state::send_close_notify() noexcept {
  if (detail::self() == nullptr || process_ != detail::this_process()) return;
  if (!is_up_ || queue(true).in_call() || queue(true).held_across_calls()) return;
  try {
    const detail::internal_shield safe;
    move_on_after(last_moment, [this] {
      std::error_code error;
      end_writing(error);
    });
  } catch (...) {  // close_notify is not sent
  }
}

void stream::state::throw_error(const std::error_code& error, const std::string& action) const {
  if (error == std::errc::operation_canceled) detail::throw_stream_error(error, "");
  throw std::system_error(error, error == failure_.code && !failure_.text.empty()
                                     ? action + ": " + failure_.text
                                     : action);
}

}}}  // namespace motet::MOTET_ABI::tls
