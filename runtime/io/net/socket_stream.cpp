// SPDX-License-Identifier: MIT
// See motet/net/socket_stream.hpp.
#include "io/net/socket_stream.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/io/io.hpp>

#include "base/system_calls.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

socket_stream::socket_stream() noexcept = default;
socket_stream::socket_stream(socket_stream&&) noexcept = default;

socket_stream& socket_stream::operator=(socket_stream&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

socket_stream::socket_stream(fd descriptor) : state_(new state(std::move(descriptor))) {}

socket_stream::~socket_stream() {
  close();
}

std::size_t socket_stream::read(std::span<std::byte> buffer) {
  return stream_read(half<false>(state_.get()), buffer);
}
std::size_t socket_stream::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return stream_read(half<false>(state_.get()), buffer, error);
}

std::size_t socket_stream::write(std::span<const std::byte> buffer) {
  return stream_write(half<true>(state_.get()), buffer);
}
std::size_t socket_stream::write(std::span<const std::byte> buffer,
                                 std::error_code& error) noexcept {
  return stream_write(half<true>(state_.get()), buffer, error);
}

void socket_stream::write_all(std::span<const std::byte> buffer) {
  stream_write_all(half<true>(state_.get()), buffer);
}
void socket_stream::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}
void socket_stream::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  stream_write_all(half<true>(state_.get()), buffer, error);
}

void socket_stream::writev_all(std::span<const iovec> buffers) {
  stream_writev_all(half<true>(state_.get()), buffers);
}

void socket_stream::shutdown(int direction) {
  io::shutdown(native_handle(), direction);
}

void socket_stream::shutdown(int direction, std::error_code& error) noexcept {
  quietly(error, [&] { return sockets::shutdown(native_handle(), direction) == 0 ? 0 : -errno; });
}

void socket_stream::close() {
  if (state_ == nullptr) return;
  state_->check_threads();
  owned<state> old_state = std::move(state_);
  old_state->end_queues();
  old_state->close_socket();
  state::destroy_when_unused(std::move(old_state));
}

fd socket_stream::release() {
  if (state_ == nullptr) return fd();
  state_->check_threads();
  // Where another thread's backend may know the number, the caller gets another one.
  fd copy;
  if (!state_->only_here()) {
    copy = fd(sys::fcntl(native_handle(), F_DUPFD_CLOEXEC, 0));
    if (!copy) throw_errno(errno, "release", native_handle());
  }
  owned<state> old_state = std::move(state_);
  old_state->end_queues();
  if (copy) {
    old_state->close_socket();
  } else if (thread_state* thread = self()) {
    sockets::hand_over(old_state->socket.get());
    thread->calls.end_all_on(old_state->socket.get());
  }
  if (!copy) copy = std::move(old_state->socket);
  state::destroy_when_unused(std::move(old_state));
  return copy;
}

std::size_t socket_stream::send_message(msghdr& message) {
  return call_throwing(half<true>(state_.get()), "sendmsg",
                       [&](half<true>& output) { return output.transfer_message(message); });
}

std::size_t socket_stream::receive_message(msghdr& message) {
  return call_throwing(half<false>(state_.get()), "recvmsg",
                       [&](half<false>& input) { return input.transfer_message(message); });
}

stream_direction socket_stream::input_direction() noexcept {
  return {this, &direction_of<half<false>>::calls};
}

stream_direction socket_stream::output_direction() noexcept {
  return {this, &direction_of<half<true>>::calls};
}

int socket_stream::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->socket.get();
}

}}}  // namespace motet::MOTET_ABI::detail
