// SPDX-License-Identifier: MIT
// See motet/detail/io/socket_stream.hpp.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <motet/detail/io/socket_stream.hpp>
#include <motet/errors.hpp>
#include <motet/io.hpp>
#include <stdexcept>

#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "words/remote_closings.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// One direction of a connection.
struct direction {
  stream_queue queue;
  bool drained = false;  // the last read took all the data there was
};

/// Streams have numbers, because the numbers of descriptors are used again.
std::uint64_t next_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

struct socket_stream::state {
  explicit state(fd connected) noexcept : socket(std::move(connected)) {}

  fd socket;
  const std::uint64_t number = next_number();
  const thread_state* used_on = nullptr;
  bool travelled = false;  // the stream has been used on more than one thread
  direction in;
  direction out;

  /// The caller has the turn.
  operation prepare(verb kind, int flags) noexcept {
    const thread_state* here = self();
    travelled = travelled || (used_on != nullptr && used_on != here);
    used_on = here;
    operation op;
    op.kind = kind;
    op.fd = socket.get();
    op.flags = flags;
    op.stream = number;
    return op;
  }

  /// Receives or sends at most `size` bytes; the caller has the turn.
  std::int32_t move(verb kind, direction& way, const std::byte* buffer, std::size_t size) {
    operation op = prepare(kind, kind == verb::send ? MSG_NOSIGNAL : 0);
    op.buffer = const_cast<std::byte*>(buffer);
    op.length = static_cast<std::uint32_t>(std::min(size, most_bytes));
    op.drained = way.drained;
    const std::int32_t result = perform_now(op, kind == verb::send ? "write on fd" : "read on fd");
    way.drained =
        kind == verb::recv && result > 0 && static_cast<std::uint32_t>(result) < op.length;
    return result;
  }

  std::int32_t read(std::span<std::byte> buffer) {
    const net::stream_turn turn(in.queue, "turn to read on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::recv, in, buffer.data(), buffer.size());
  }

  std::int32_t write(std::span<const std::byte> buffer) {
    const net::stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::send, out, buffer.data(), buffer.size());
  }

  std::int32_t write_all(std::span<const std::byte> buffer) {
    const net::stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    while (!buffer.empty()) {
      const std::int32_t sent = move(verb::send, out, buffer.data(), buffer.size());
      if (sent < 0) return sent;
      buffer = buffer.subspan(static_cast<std::size_t>(sent));
    }
    return 0;
  }

  std::int32_t send_message(msghdr& message) {
    const net::stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    operation op = prepare(verb::sendmsg, MSG_NOSIGNAL);
    op.message = &message;
    return perform_now(op, "sendmsg on fd");
  }

  std::int32_t receive_message(msghdr& message) {
    const net::stream_turn turn(in.queue, "turn to read on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    operation op = prepare(verb::recvmsg, MSG_CMSG_CLOEXEC);
    op.message = &message;
    return perform_now(op, "recvmsg on fd");
  }

  void check_threads() {
    if (in.queue.taken_elsewhere() || out.queue.taken_elsewhere()) {
      throw std::logic_error("a fiber of another thread reads or writes on the stream");
    }
  }

  /// The fibers that wait for their turns get bad_file_descriptor, and so do all that come later.
  void end_queues() noexcept {
    in.queue.close();
    out.queue.close();
  }

  /// The fibers in a call on the stream must have left it before the state is destroyed.
  void await_leave() noexcept {
    thread_state* thread = self();
    if (thread == nullptr) return;
    while (in.queue.in_use() || out.queue.in_use()) thread->snooze();
  }

  /// Whether no other thread's backend may keep anything for the socket.
  bool only_here() const noexcept {
    return !travelled && (used_on == nullptr || used_on == self());
  }

  void close_socket() {
    if (only_here()) {
      socket.close();
      return;
    }
    if (thread_state* thread = self()) thread->calls.end_all_on(socket.get());
    const remote_closing guard;
    ::close(socket.release());
  }
};

socket_stream::socket_stream() noexcept = default;
socket_stream::socket_stream(socket_stream&&) noexcept = default;

socket_stream& socket_stream::operator=(socket_stream&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

socket_stream::socket_stream(fd connected)
    : state_(std::make_unique<state>(std::move(connected))) {}

socket_stream::~socket_stream() {
  close();
}

std::size_t socket_stream::read(std::span<std::byte> buffer) {
  here().deliver();
  const int number = native_handle();  // the stream may be moved while the call waits
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->read(buffer);
  return settled(result, "read", number);
}

std::size_t socket_stream::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return quietly(error, [&] { return state_ == nullptr ? -EBADF : state_->read(buffer); });
}

std::size_t socket_stream::write(std::span<const std::byte> buffer) {
  here().deliver();
  const int number = native_handle();  // the stream may be moved while the call waits
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->write(buffer);
  return settled(result, "write", number);
}

std::size_t socket_stream::write(std::span<const std::byte> buffer,
                                 std::error_code& error) noexcept {
  return quietly(error, [&] { return state_ == nullptr ? -EBADF : state_->write(buffer); });
}

void socket_stream::write_all(std::span<const std::byte> buffer) {
  here().deliver();
  const int number = native_handle();  // the stream may be moved while the call waits
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->write_all(buffer);
  settled(result, "write_all", number);
}

void socket_stream::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}

void socket_stream::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  quietly(error, [&] { return state_ == nullptr ? -EBADF : state_->write_all(buffer); });
}

void socket_stream::shutdown(int how) {
  io::shutdown(native_handle(), how);
}

void socket_stream::shutdown(int how, std::error_code& error) noexcept {
  quietly(error, [&] { return ::shutdown(native_handle(), how) == 0 ? 0 : -errno; });
}

void socket_stream::close() {
  if (state_ == nullptr) return;
  state_->check_threads();
  const std::unique_ptr<state> closed = std::move(state_);
  closed->end_queues();
  closed->close_socket();
  closed->await_leave();
}

fd socket_stream::release() {
  if (state_ == nullptr) return fd();
  state_->check_threads();
  // Where another thread's backend may know the number, the caller gets another one.
  fd copy;
  if (!state_->only_here()) {
    copy = fd(::fcntl(native_handle(), F_DUPFD_CLOEXEC, 0));
    if (!copy) throw_errno(errno, "release", native_handle());
  }
  const std::unique_ptr<state> left = std::move(state_);
  left->end_queues();
  if (copy) {
    left->close_socket();
  } else if (thread_state* thread = self()) {
    thread->calls.end_all_on(left->socket.get());
  }
  left->await_leave();
  return copy ? std::move(copy) : std::move(left->socket);
}

std::size_t socket_stream::send_message(msghdr& message) {
  here().deliver();
  const int number = native_handle();
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->send_message(message);
  return settled(result, "sendmsg", number);
}

std::size_t socket_stream::receive_message(msghdr& message) {
  here().deliver();
  const int number = native_handle();
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->receive_message(message);
  return settled(result, "recvmsg", number);
}

int socket_stream::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->socket.get();
}

}}}  // namespace motet::MOTET_ABI::detail
